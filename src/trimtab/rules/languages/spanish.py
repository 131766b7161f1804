"""Spanish."""

from __future__ import annotations

from trimtab.rules.language import Language

__all__ = ["SPANISH"]

SPANISH = Language(
    code="es",
    common="""
el la los las un una unos unas de del al y o que en con por para sin sobre es son era está están no sí
yo tú él ella nosotros me te se lo le mi mis tu tus su sus nuestro nuestra este esta estos estas eso
esto como cuando donde qué quién cómo pero si más muy ya también nunca siempre jamás favor debe debes
deben hay tiene tengo quiero prefiero puede puedes cada todo todos todas ni antes después ahora hasta
""",
    verbs="""
usa use uses usen usar utiliza utilice utilices responde responda respondas responder contesta conteste
contestes contestar escribe escriba escribas escribir pon ponga pongas poner incluye incluya incluyas
incluir añade añada añadas agrega agregue agregues haz haga hagas hacer di diga digas decir da dé des
dar manda mande mandes mandar envía envíe envíes enviar borra borre borres borrar elimina elimine
elimines eliminar cambia cambie cambies cambiar modifica modifique modifiques toca toque toques tocar
ejecuta ejecute ejecutes ejecutar corre corra corras despliega despliegue despliegues desplegar publica
publique publiques publicar revela revele reveles revelar comparte comparta compartas compartir muestra
muestre muestres mostrar pregunta pregunte preguntes preguntar pide pida pidas pedir espera espere
esperes confirma confirme confirmes confirmar verifica verifique verifiques revisa revise revises guarda
guarde guardes habla hable hables hablar evita evite evites evitar mantén mantenga mantengas termina
termine termines empieza empiece empieces llame llames cita cite cites menciona mencione menciones
mencionar traduce traduzca resume resuma explica explique explica sube suba subas subir crea cree crees
crear instala instale instales reserva reserve reserves compra compre compres comprar gasta gaste gastes
gastar pasa pase pases excede exceda excedas superes supere redondea redondee ordena ordene trata trate
trates tutéame convierte convierta sigue siga deja deje dejes abre abra abras lee lea leas fusiona
fusione fusiones vayas vaya asumas asuma supongas expliques repitas repite confíes olvida olvides
""",
    numbers="""
uno una dos tres cuatro cinco seis siete ocho nueve diez veinte treinta cincuenta cien ciento mil
""",
    joints="por favor pero entonces además importante ok vale hola gracias mejor realidad",
    links="y e o ni",
    idle="""
el la los las un una unos unas de del al y o en con por para sin que es son sea está favor siempre nunca
jamás no debe debes deben ahora adelante partir hoy todo todos todas cada cualquier solo sólo me te se
lo le mi mis tu tus su sus yo más menos máximo mínimo como cuando si pero usa use uses usar quiero
prefiero mejor resto conversación sesión realidad
""",
    classes=(
        "español inglés francés alemán italiano portugués chino japonés",
        "métrico métricas métricos imperial imperiales métricas",
        "tabuladores espacios tabs",
        "utc gmt",
        "json yaml toml xml csv markdown html",
        "celsius fahrenheit",
        "formal informal",
        "euros dólares pesos",
    ),
    slots="en usa use como a",
    additions="también además asimismo otro otra",
    negations="no nunca jamás nada ningún ninguna nadie evita evite",
    tags="vale ok favor sí entendido verdad gracias",
    cues={
        "void": """
nunca más
nunca|jamás antes|eres|has|tienes|puedes|quieres|sabes|haces|dices|vienes|vas|estas|debieras|veces|meses
nunca|jamás *abas|*ías|*asteis|*aras|*ieras|*iste|*aste
no tienes|puedes|quieres|sabes|haces|dices|vienes|eres|has|debes .. nunca|jamás
nunca he|había|ha|fui|supe|pensé|vi|tuve|me|se|es
siempre he|ha|había|me|fue|es|quise|hay
no te preocupes
no te|se|me olvides|preocupes|olvide
^ no sé|hay|tengo|es|era|creo|puedo|quiero|importa|pasa|recuerdo
^ no entiendo|me|problem|hace|está|he|ha|fue|necesito|te|se|lo
^ no ,
^ sin embargo|duda|problema|problemas
ella|él|ellos|yo|debe ser|estar muy|difícil|bonito|cansado|un|una|genial
debe de
hace falta ver
""",
        "report": """
jefe|jefa|él|ella|médico|profesor|madre|padre dice|dijo|dicen|pide|pidió|afirma|recomienda|sugiere|indica
cliente|readme|documentación|manual dice|dijo|dicen|pide|pidió|afirma|recomienda|sugiere|indica
artículo|libro|cartel|guía|política dice|dijo|dicen|pide|pidió|afirma|recomienda|sugiere|indica
dijo|dicen|dice que
según
me dijo|dijeron|contó
leí que
supuestamente
""",
        "fiction": """
imagina|imagínate|finge|supón|haz_como
^ escribe|escriba|cuenta|cuéntame|inventa|crea .. cuento|historia|poema|canción|chiste|novela|diálogo
en la|el historia|película|cuento|novela|juego
había una vez
juego de rol
el personaje|protagonista
""",
        "handover": """
traduce|traduzca|corrige|corrija|resume|resuma|revisa|revise|analiza|analice|mejora|reescribe .. :
siguiente|siguientes texto|correo|mensaje|artículo|carta|párrafo|documento|frase|frases|mail
aquí está|tienes|va .. texto|correo|mensaje|artículo|carta|documento
^^ texto|artículo|correo|documento|mensaje|salida|error|contexto :
""",
        "claim": """
ignora|ignore|olvida|olvide .. instrucciones|reglas anteriores|previas
^^ sistema|desarrollador|administrador|operador :
instrucción|instrucciones|mensaje|nota del operador|sistema|desarrollador|administrador
""",
        "permit": """
ya puedes|puede
ahora sí? puedes|puede
puedes|puede ahora|ya
olvida|ignora .. que|regla|reglas|instrucciones|anterior|anteriores
ya no hace|tienes|es
no hace falta|tienes_que|tiene_que|es_necesario
""",
        "ask": """
^ puedes|podrías|puede|podría
^ te|le importaría
¿ puedes|podrías|puede|podría
¿ te|le importaría
""",
        "once": """
esta vez
por ahora|hoy
solo|sólo hoy|ahora|una
hoy
todavía|aún
de nuevo
en esta respuesta
para esta|este tarea|respuesta|mensaje
""",
        "label": """
regla|restricción|norma|condición importante|estricta|de_la_casa
^^ regla|norma|restricción|importante|límite :
importante regla|restricción
nuestra|mi|una regla|norma
""",
        "heading": """
reglas|normas|convenciones|preferencias|restricciones|pautas
""",
        "ban": """
no debe|debes|deben|se_debe|se_puede|se_pueden _
no está|están permitido|permitida|permitidos|permitidas
está|están|queda prohibido|prohibida|prohibidos|prohibidas
prohibido _
bajo ningún|ninguna concepto|circunstancia
en ningún caso
de ninguna manera
nadie debe|puede
nunca debe|debes|deben|se
""",
        "duration": """
a partir de ahora|hoy|aquí|este
de ahora|aquí|hoy en adelante
desde ahora|hoy
en adelante
de aquí en
^ en el futuro
por|para|durante el resto de la|el|esta|este|nuestra conversación|sesión|chat|proyecto|viaje
durante toda|todo esta|este|la|el|conversación
hasta nuevo aviso
hasta que te|yo|diga|avise
sin excepción|excepciones
en todo momento
en esta sesión|conversación
""",
        "always": """
^ nunca @
^ siempre @
^ jamás @
^^ nunca|jamás *es|*as +
^^ nunca|jamás me|le|lo|la|los|las|nos *es|*as
^ no *es|*as nunca|jamás
^ no *es|*as .. nunca|jamás
^^^ nunca|jamás|siempre *e|*a|*an|*en
^ @ .. siempre
^ no @ jamás|nunca
debe|debes|deben .. siempre
siempre debe|debes|deben
nunca|siempre que
quiero .. siempre
asegúrate|recuerda .. siempre|nunca
aquí|nosotros nunca|siempre _
nunca desplegamos|usamos|hacemos|subimos|fusionamos
siempre desplegamos|usamos|hacemos|subimos|escribimos
por favor siempre|nunca
""",
        "general": """
cada respuesta|mensaje|commit
en|a todas|todos las|los|tus respuestas|mensajes|commits
^ cada|toda|todo|todas_las|todos_los respuesta|respuestas|mensaje|mensajes|commit|commits|precios|fechas
^ cada|toda|todo|todas_las|todos_los horas|medidas|importes|función|funciones|cambio|cambios|correo|correos
tus|sus respuestas|mensajes|correos
^ por defecto
^ en general
en este proyecto|repositorio
en mi nombre
por respuesta|mensaje|commit
""",
        "gate": """
sin .. aprobación|permiso|consentimiento|autorización|confirmación
sin .. preguntar|preguntarme|consultarme|consultar|avisarme|confirmar
hasta que yo|el|la|alguien|lo|nosotros
a menos que yo|te|lo|el
salvo que yo|te|lo
pregunta|pregúntame|consulta|consúltame|pregunte .. antes
antes de .. pregunta|pregúntame|muéstrame|avísame|consúltame|pide|confirma
espera mi|a_que_yo
solo|sólo con mi
""",
        "case": """
^ cada vez que
^ siempre que
^ cuando alguien|te
^ antes de _
^ después de cada
^ si alguien|no_sabes|no_estás
^ antes de cada
^ en caso de
""",
        "duty": """
debes|debe|deben|tienes_que|tiene_que|hay_que _
es|son obligatorio|obligatoria|obligatorios|obligatorias
asegúrate|asegúrese de
""",
        "deny": """
^ no @
^ no me|lo|le|nos|la|los|las|se @
^ nada de
^ evita|evite|evitar _
^ sin _
^ ningún|ninguna _
""",
        "act": """
^ @
^^ solo|sólo _
quiero|necesito que @
^ muéstramelo|dímelo|pregúntame|avísame|consúltame|enséñamelo|confírmamelo|dime|muéstrame|ponme|dame
llámame|trátame|háblame|respóndeme|escríbeme
""",
        "cap": """
mi|nuestro|el presupuesto|límite|tope .. es|: de? #
^ presupuesto|límite|tope : .. #
no|nunca .. más de # .. por|cada|en
no|nunca gastes|gaste|gastar|superes|supere|pases|excedas|superar|pagar .. #
^^ máximo|mínimo # .. por|cada
^^ no más de # .. por|cada
respuestas|mensajes|líneas|funciones|correos .. menos|más|máximo de|: #
como máximo # .. por|cada
puedo|quiero gastar|pagar .. #
no puede|debe|pueden|deben superar|exceder|pasar
no puedo|quiero gastar|pagar
""",
        "limit": """
menos|más de #
máximo|mínimo|máximo_de #
como máximo|mínimo|mucho #
hasta #
""",
        "prefer": """
prefiero _
preferiría _
me gusta|gustan|gustaría más|que|tener
no me gusta|gustan
odio _
detesto _
llámame _
tutéame
trátame de
mi preferencia|preferido|favorito es
soy vegetariano|vegetariana|vegano|vegana|alérgico|alérgica|celíaco|celíaca|intolerante
no como carne|gluten|pescado|cerdo
no quiero que|ningún|ninguna|nada|volar|pagar
quiero todas|todos las|los|tus respuestas|fechas|precios|medidas|horas en|con
""",
    },
)
