"""What every room may use; nothing here knows a message."""
