"""The engine: request, layout, settle, fitted, reporting; in this order."""
