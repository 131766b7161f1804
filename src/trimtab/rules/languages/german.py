"""German."""

from __future__ import annotations

from trimtab.rules.language import Language

__all__ = ["GERMAN"]

GERMAN = Language(
    code="de",
    common="""
der die das den dem des ein eine einen einem einer und oder ist sind war nicht kein keine keinen ich du
er sie es wir ihr mir dir mich dich uns mein meine dein deine unser unsere zu zum zur im in mit für auf
von vom bei an am auch nur nie niemals immer bitte wenn dass als wie was wer wo warum aber noch schon
muss müssen darf dürfen soll sollen kann können ab alle jede jeder jedes jeden bevor ohne bis über unter
""",
    verbs="""
achte achten ändere ändern aktualisiere antworte antworten arbeite benutze benutzen benenne beende
beenden begründe behalte behalten beachte beachten beginne beginnen beschränke bestätige buche buchen
deploye deployen drucke erkläre erklären ersetze ersetzen erstelle erstellen erwähne erwähnen fass fasse
fassen frag frage fragen führe führen füge fügen gib geben gehe gehen halte halten hänge ignoriere
informiere installiere kürze kürzen lade lass lasse lassen lege lies lese lesen lösche löschen mach
mache machen melde melden merge mergen nenn nenne nennen nimm nehmen nutze nutzen öffne öffnen ordne
prüfe prüfen pushe pushen rechne rechnen rede reden runde runden sag sage sagen schick schicke schicken
schließe schreib schreibe schreiben sende senden setze setzen speichere speichern sprich sprechen starte
starten stelle stellen teile teilen teste testen überschreibe überschreiben überschreite übersetze
übersetzen veröffentliche veröffentlichen verrate verraten vermeide vermeiden verschicke verschicken
verwende verwenden warte warten wechsle zeig zeige zeigen zitiere zitieren duze duzen sieze siezen
committe committen formatiere formatieren kommentiere kommentieren berühre anfassen ausgeben angeben
verändere verändern weitergeben hinzufügen arbeite bearbeite beobachte bewerte biete erstatte erwarte gestatte
leite richte schalte streite unterhalte verbiete verbreite vermiete vernichte verwalte verzichte wette
""",
    numbers="ein zwei drei vier fünf sechs sieben acht neun zehn zwanzig dreißig fünfzig hundert tausend",
    joints="bitte aber also dann außerdem wichtig achtung ok okay hallo danke tatsächlich stattdessen",
    links="und oder",
    idle="""
der die das den dem des ein eine einen einem einer eines zu zum zur im in mit für auf von vom bei an am
ist sind sei bitte immer nie niemals nicht kein keine keinen muss müssen darf dürfen soll sollen ab
jetzt sofort künftig zukünftig alle allen jede jeder jedes jeden nur noch doch mir mich du dich dein
deine deinen ich mein meine meinen wenn dass und oder aber unter über höchstens maximal mehr als bis
statt lieber rest gespräch sitzung liegt beträgt nun
""",
    classes=(
        "deutsch englisch französisch spanisch italienisch "
        "chinesisch japanisch deutsche englische deutscher englischer",
        "metrisch metrische imperial imperiale metrischen imperialen",
        "tabs leerzeichen tabulatoren",
        "utc mez mesz",
        "json yaml toml xml csv markdown html",
        "celsius fahrenheit kelvin",
        "formell informell",
        "euro dollar franken",
    ),
    slots="auf in nutze verwende benutze mich als",
    additions="auch zusätzlich ebenfalls außerdem weitere",
    negations="nicht nie niemals kein keine keinen keinerlei nichts keinesfalls niemand",
    tags="ok okay ja bitte verstanden gell oder",
    cues={
        "void": """
nie wieder
nie mehr
nie im
^^ *te nie|niemals|immer|stets
^^ ich|du|er|sie|es|wir|ihr|das|dies|was|wer|wo|wie|wann|da|hier|dort nie|niemals|immer|stets
^^ noch|auch|nur|bisher|sonst|früher|damals|heute|gestern|jetzt|leider|zwar|oft nie|niemals|immer|stets
^^ war|waren|bin|ist|sind|hab|habe|haben|wird|wurde|werde|ging|kam|sah|gab nie|niemals|immer|stets
^^ für|auf|schon|nicht|beinahe|ohne|alle|viele|meine|deine|seine|ihre|eine|diese|jede nie|niemals|immer|stets
^^ kann|kannst|können|muss|müssen|wollen|soll|sollen|darf|dürfen|mag nie|niemals|immer|stets
^^ danke|liebe|leute|manche|einige|andere|beide|gerade|besser|jetzt|dann|denn nie|niemals|immer|stets
^^ und|oder|aber|weil|nun|vielleicht|lieber nie|niemals|immer|stets
^ keine ahnung|sorge|angst|frage|lust|zeit|idee|eile|rede|chance
^ kein problem|ding|stress|wunder
^ nicht schlecht|wirklich|ganz|so|wahr|nur|mehr|dass|schlimm
ich|er|sie|es|wir|das muss|müssen|musste|soll|sollen|habe|hatte|hat|war
muss|müsste es|das|er|sie|ich|wohl|ja schön|toll|doch|hier|da
mach dir keine
^ frage|antwort|frag :
""",
        "report": """
er|sie|chef|chefin sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|verlangt|steht
kollege|kollegin|arzt|lehrer|mutter sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|verlangt|steht
vater|kunde|readme|doku|dokumentation sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|verlangt|steht
handbuch|artikel|buch|schild|richtlinie sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|verlangt|steht
hat|haben gesagt|gemeint|geschrieben|behauptet
^^ laut|gemäß _
laut|gemäß der|dem|einer|einem|unserem|unserer
im|in artikel|buch|handbuch|readme|doku|der steht
angeblich
""",
        "fiction": """
stell dir vor
stellen sie sich vor
tu|tue so als
^ schreib|schreibe|schreiben|erzähl|erzähle|erfinde .. geschichte|gedicht|lied|märchen|witz|roman|dialog
es war einmal
in der geschichte
im film|spiel|roman|märchen
rollenspiel
die figur|hauptfigur
""",
        "handover": """
übersetze|übersetzen|korrigiere|korrigieren|fasse|fass .. :
zusammenfassen|prüfe|überprüfe|analysiere|verbessere|lektoriere .. :
folgenden|folgende|folgendes text|mail|e-mail|email|artikel|brief
folgenden|folgende|folgendes absatz|dokument|nachricht|vertrag|abschnitt|satz|protokoll
hier ist|kommt .. text|mail|email|artikel|brief|absatz|dokument|nachricht|readme|protokoll
text|mail|artikel|brief|dokument|nachricht unten
^^ text|artikel|mail|brief|dokument|protokoll|readme|ausgabe|fehler|kontext :
""",
        "claim": """
ignoriere|ignorieren|vergiss|vergessen .. bisherigen|früheren|vorherigen|vorigen|obigen anweisungen|regeln
^^ system|entwickler|administrator|betreiber :
anweisung|anweisungen|nachricht|hinweis des betreibers|administrators|systems|entwicklers
""",
        "permit": """
du|sie darfst|dürfen jetzt|nun|wieder
du|sie kannst|können jetzt|nun|wieder
vergiss|vergessen .. was|alles|regel|anweisung|anweisungen
ignoriere .. anweisung|anweisungen|regel|regeln
nicht mehr nötig
musst|müssen nicht
du|sie musst|müssen .. nicht mehr
""",
        "ask": """
^ kannst|könntest|würdest|könnten|würden|können du|sie
""",
        "once": """
diesmal
dieses mal
nur heute|jetzt
für jetzt|diese|diesen|dieses
fürs erste
heute|gleich|noch nicht|nochmal
in dieser antwort|mail|nachricht
""",
        "label": """
wichtige|harte|strikte|feste regel|vorgabe|einschränkung|bedingung|grenze
^^ regel|vorgabe|wichtig|hausregel|grundregel|bedingung :
unsere|meine|eine regel|hausregel|grundregel
""",
        "heading": """
regeln|richtlinien|konventionen|vorgaben|vorlieben|hausregeln
""",
        "ban": """
darf|dürfen|darfst .. nicht|nie|niemals|kein|keine|keinen|keinesfalls
auf keinen fall
unter keinen umständen
in keinem fall
keinesfalls
ist|sind verboten|untersagt|tabu
ist|sind nicht erlaubt|gestattet|zulässig
niemand darf|soll
es|dort|hier gilt|herrscht .. verbot
""",
        "duration": """
ab jetzt|sofort|heute|nun
von jetzt|nun an
von heute an
ab diesem zeitpunkt|moment
künftig
zukünftig
^ in zukunft
^ @ in zukunft
für den rest des|der|dieser|unseres gesprächs|chats|projekts|sitzung|unterhaltung|reise
für die ganze|gesamte|restliche sitzung|unterhaltung|reise
bis auf weiteres
bis ich .. anderes|sage
solange ich nicht
ausnahmslos
ohne ausnahme
während der ganzen|gesamten
in dieser sitzung|unterhaltung
in diesem gespräch|chat
""",
        "always": """
^ nie|niemals _
^ immer _
^ @ .. immer|nie|niemals|stets|grundsätzlich
^^ + niemals _
^^^ + nie|niemals|immer|stets _
^^ + nie an|am|auf|aus|bei|den|das|die|der|dem|ein|eine|einen|einem|etwas|für|gegen|im|in|ins|mit|nach|ohne
^^ + nie über|um|unter|vom|von|vor|zu|zum|zur|mein|meine|meinen|unsere|unseren|dein|direkt|selbst|länger|mehr
^^ *e immer|stets +
^^ *en sie nie|niemals|immer|stets
^^ *e mir|mich|uns|ihn|sie|es|ihm|ihnen nie|niemals|immer|stets
^^ *e den|das|die|dem|meine|meinen|mein|unsere|unseren + nie|niemals
bitte nie|niemals|immer|stets
du|sie|wir sollst|sollen|musst|müssen .. immer|nie|niemals|stets
muss|müssen|soll|sollen|sollte immer|nie|niemals|stets
wir deployen|mergen|pushen|verwenden|nutzen|schreiben|benutzen .. nie|niemals|immer|grundsätzlich
will|möchte .. immer|nie|niemals|stets
^ @ sie .. immer|nie|niemals|stets
@ .. niemals
""",
        "general": """
jede|jeder|jedes|jeden antwort|nachricht|commit
in|mit|zu allen antworten|nachrichten|commits
^ jede|jeder|jedes|jeden|alle preis|preise|betrag|beträge|zeiten|maße|einheiten|datumsangaben|zahlen
^ jede|jeder|jedes|jeden|alle funktion|funktionen|änderung|änderungen|mail|mails|uhrzeiten|commits
^ alle antworten|nachrichten
deine|deinen|ihre|ihren antworten|nachrichten|mails|kommentaren|commits
^ antworten|commits|nachrichten
^ grundsätzlich
^ generell
^ standardmäßig
in diesem projekt|repo
in meinem namen
pro antwort|nachricht|commit
""",
        "gate": """
ohne .. zustimmung|freigabe|erlaubnis|genehmigung|einwilligung
ohne .. bestätigung|rückfrage|fragen|rücksprache|absprache
erst wenn|nachdem|sobald ich|wir|der|die
bis ich|wir|jemand _
bevor ich|wir|der|die .. freigegeben|zugestimmt|bestätigt|geprüft|gesehen
frag|frage|fragen mich|sie vorher|zuerst|erst|bevor
warte|warten .. auf meine|mein|meinen|ihre
nur mit meiner|meinem
bevor .. frag|frage|fragen|zeig|zeige .. mich|mir
außer ich|wenn
""",
        "case": """
immer wenn
^ jedes mal , wenn
^^ sobald ein|eine|jemand
^ wenn jemand _
^ wenn du|sie nicht|unsicher
^ bevor du|sie _
^ nach jedem|jeder
bevor|nachdem du|sie _
vor jedem|jeder
im zweifel
^ falls jemand|du
""",
        "duty": """
du|sie musst|müssen|sollst|sollen _
muss|müssen .. sein|werden|bleiben|haben|enthalten|laufen
ist|sind pflicht|verpflichtend|erforderlich|vorgeschrieben
achte|achten .. darauf
stell|stelle|stellen .. sicher
""",
        "deny": """
^ @ .. nicht|kein|keine|keinen|keinerlei|nichts
^ kein|keine|keinen|keinerlei _
^ nicht _
^ vermeide|vermeiden _
^ verzichte|verzichten auf
du|sie solltest|sollst|sollen|sollten .. nicht|kein|keine|keinen
lass|lasse|lassen .. weg|unberührt|unverändert|finger
""",
        "act": """
^ @
^^ nur _
ich will|möchte|hätte|brauche .. dass du|sie
""",
        "cap": """
mein|unser|das budget|limit|höchstbetrag .. ist|beträgt|liegt|: .. #
^ budget|limit|obergrenze|höchstbetrag : .. #
höchstens|maximal # .. pro|je
nicht mehr als # .. pro|je|ausgeben
^^ höchstens|maximal|mindestens|max # .. pro|je
^^ nicht mehr als # .. pro|je
antworten|nachrichten|zeilen|funktionen|sätze|mails .. höchstens|maximal|unter|als #
darf|dürfen|soll|sollen .. höchstens|maximal #
darf|dürfen|soll|sollen .. nicht mehr|länger als #
darf|dürfen|soll|sollen .. nicht über #
darf|dürfen|soll .. # .. nicht überschreiten|übersteigen
kann|will|möchte .. höchstens|maximal #
""",
        "limit": """
höchstens|maximal|mindestens|bis_zu #
nicht mehr|länger|weniger als #
unter|über #
""",
        "prefer": """
ich bevorzuge|bevorzugte
ich mag .. lieber|keine|kein|keinen
ich hätte|möchte|will|habe|nehme|würde .. lieber
ich möchte|will kein|keine|keinen
ich möchte|will nicht , dass
mir ist|sind|wäre|wären .. lieber
mir .. lieber
nenn|nenne|nennen .. mich|sie_mich
duze|sieze mich
ich hasse
ich kann .. nicht ausstehen|leiden
ich bin vegetarier|vegetarierin|veganer|veganerin|vegetarisch|vegan|allergisch
ich esse kein|keine|nur|vegetarisch|vegan
bevorzugt _
am liebsten
""",
    },
)
