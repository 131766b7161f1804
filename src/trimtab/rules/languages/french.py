"""French."""

from __future__ import annotations

from trimtab.rules.language import Language

__all__ = ["FRENCH"]

FRENCH = Language(
    code="fr",
    common="""
le la les un une des du de et ou est sont était ne pas je tu il elle nous vous on me te se mon ma mes
ton ta tes son sa ses notre nos votre vos ce cette ces cet que qui quoi dont où quand comment pourquoi
mais si plus très déjà aussi jamais toujours plaît stp svp doit dois doivent devez avec sans pour par
dans sur en au aux c'est n'est j'ai d'un d'une l'on chaque tout tous toutes avant après dès désormais
jusqu'à être faire
""",
    verbs="""
utilise utilisez utiliser emploie employez employer réponds répondez répondre écris écrivez écrire mets
mettez mettre ajoute ajoutez ajouter inclus incluez inclure fais faites faire dis dites dire donne
donnez donner envoie envoyez envoyer supprime supprimez supprimer efface effacez effacer change changez
changer modifie modifiez modifier touche touchez toucher exécute exécutez exécuter lance lancez lancer
déploie déployez déployer publie publiez publier révèle révélez révéler divulgue divulguez divulguer
partage partagez partager montre montrez montrer demande demandez demander attends attendez attendre
confirme confirmez confirmer vérifie vérifiez vérifier relis relisez garde gardez garder parle parlez
parler évite évitez éviter termine terminez terminer commence commencez commencer appelle appelez
appeler cite citez citer mentionne mentionnez mentionner traduis traduisez résume résumez explique
expliquez pousse poussez pousser crée créez créer installe installez installer réserve réservez achète achetez
acheter dépense dépensez dépenser dépasse dépassez dépasser arrondis arrondissez limite limitez limiter
formate formatez convertis convertissez suis suivez laisse laissez ouvre ouvrez ouvrir lis lisez lire
fusionne fusionnez fusionner tutoie tutoyez vouvoie vouvoyez va allez prends prenez prendre indique
indiquez indiquer affiche affichez afficher préfère préférez commite commiter suppose supposez invente
inventez inventer oublie oubliez reste restez passe passez conserve conservez
""",
    numbers="deux trois quatre cinq six sept huit neuf dix vingt trente quarante cinquante cent mille",
    joints="s'il te vous plaît stp svp mais alors donc important ok bonjour merci finalement plutôt",
    links="et ou",
    idle="""
le la les un une des du de et ou ne pas à au aux en dans sur par pour avec sans que qui est sont soit
toujours jamais doit dois doivent devez désormais maintenant partir dorénavant chaque tout tous toutes
seulement me te se moi mon ma mes ton ta tes je tu vous nous plus moins maximum minimum si quand mais
s'il plaît utilise utilisez reste conversation session plutôt finalement stp svp lieu place
""",
    classes=(
        "français anglais allemand espagnol italien chinois japonais",
        "métrique métriques impérial impériales",
        "tabulations espaces tabs",
        "utc gmt",
        "json yaml toml xml csv markdown html",
        "celsius fahrenheit",
        "formel informel",
        "euros dollars",
    ),
    slots="en utilise utilisez comme à",
    additions="aussi également encore autre",
    negations="ne pas jamais aucun aucune rien personne évite évitez n'utilise n'utilisez",
    tags="ok d'accord merci compris plaît stp svp",
    cues={
        "void": """
jamais vu|su|eu|été|pensé|cru|dit|fait|plus|de
^^ presque|comme|elle|plus|mais|puis|sans|depuis|pas|ils|elles|nous|vous|je|encore jamais|toujours
^^ madame|j'étais|c'était|n'avais|n'étais|n'ose jamais|toujours
^^ ne sais|sait|savais|vois|suis|peux|veux|dois jamais
toujours été|eu|pas|là|un|une|le|la
ne t'inquiète|t'en|vous_inquiétez
ne te|vous inquiète|inquiétez|préoccupe
n'hésite|n'hésitez pas
^ pas de souci|problème|soucis|quoi|chance|panique
^ pas mal|vraiment|du|encore|grave|sûr|besoin|possible|question
il|elle|ils|elles|je|ça|cela|on doit|dois|devait|devrait|faut
doit être très|bien|fatigué|sympa|beau
je n'ai|ne
""",
        "report": """
chef|cheffe|patron|patronne dit|disait|disent|demande|affirme|recommande|indique|prétend
il|elle|médecin|professeur|mère dit|disait|disent|demande|affirme|recommande|indique|prétend
père|client|readme|documentation|manuel dit|disait|disent|demande|affirme|recommande|indique|prétend
article|livre|panneau|guide|politique dit|disait|disent|demande|affirme|recommande|indique|prétend
a|ont|m'a|m'ont dit|demandé|écrit|affirmé
dit que
selon
d'après
j'ai lu
il paraît
""",
        "fiction": """
imagine|imaginez|supposons
fais|faites comme|semblant
^ écris|écrivez|raconte|racontez|invente .. histoire|poème|conte|chanson|blague|roman|dialogue
dans l'histoire|le|la film|roman|conte|jeu
dans l'histoire
il était une
jeu de rôle
le personnage|héros
""",
        "handover": """
traduis|traduisez|corrige|corrigez|résume|résumez .. :
relis|relisez|analyse|analysez|améliore|reformule|reformulez .. :
texte|mail|courriel|message|article suivant|suivante|suivants|suivantes|ci-dessous
lettre|paragraphe|document|phrase|phrases suivant|suivante|suivants|suivantes|ci-dessous
voici le|la|un|une|mon|l'article .. texte|mail|message|article|lettre|document
voici l'article|l'e-mail
^^ texte|article|mail|document|message|sortie|erreur|contexte :
""",
        "claim": """
ignore|ignorez|oublie|oubliez .. instructions|consignes|règles précédentes|antérieures|ci-dessus
^^ système|développeur|administrateur|opérateur :
instruction|instructions|message|note de|du l'opérateur|l'administrateur|système|développeur
""",
        "permit": """
tu|vous peux|pouvez maintenant|désormais|à_nouveau
maintenant tu|vous peux|pouvez
oublie|oubliez|ignore|ignorez .. que|ce|règle|règles|instructions
plus besoin
pas besoin
n'es|n'êtes plus
""",
        "ask": """
^ peux|pourrais|pouvez|pourriez
^ est-ce que tu|vous
""",
        "once": """
cette fois
pour l'instant|le_moment|aujourd'hui
aujourd'hui
juste cette|une
encore une
pas encore
dans cette réponse
pour cette|ce tâche|réponse|message
""",
        "label": """
règle|contrainte|consigne|limite importante|stricte|absolue
^^ règle|contrainte|consigne|important|limite|rappel :
notre|ma|une règle|consigne|convention
""",
        "heading": """
règles|consignes|conventions|préférences|contraintes
""",
        "ban": """
ne doit|dois|doivent|devez|peut|peuvent jamais|pas|en_aucun
n'est|n'sont|ne_sont pas autorisé|autorisée|autorisés|permis|permise|admis
est|sont interdit|interdite|interdits|interdites|prohibé|proscrit
interdit de|d'
interdiction de|formelle|absolue
en aucun cas
sous aucun prétexte
à aucun moment
personne ne doit|peut
il est interdit
il ne faut jamais|pas
jamais , sous
""",
        "duration": """
à partir de maintenant|aujourd'hui
à partir d'aujourd'hui
^ à l'avenir
^ @ à l'avenir
dorénavant
désormais
dès maintenant|à_présent|lors
pour le|la reste|suite de la|cette|notre conversation|session|discussion
pour|pendant toute|tout la|cette|le|ce conversation|session|discussion|projet|voyage
jusqu'à nouvel ordre
jusqu'à ce que je
sans exception
en toutes circonstances
dans tous les cas
dans cette session|conversation
""",
        "always": """
^ ne|n' @ jamais
^ n'@ jamais
^ ne me|le|la|les|nous @ jamais
^ n'@ .. jamais
^^ ne + jamais
^^ ne + plus jamais
^^ ne me|le|la|les|nous|lui|leur + jamais
^^ ne jamais +
^^ *e|*ez|*s|@ jamais +
^^ *e|*ez toujours le|la|les|un|une|mon|ma|mes|ton|ta|tes|votre|vos|notre|nos|avec|avant|après|d'abord
^^^ + jamais|toujours _
^ jamais de|d'|sans _
^^ jamais _
^ @ toujours
^ @ .. toujours
^^ toujours _
toujours @
doit|dois|doivent|devez toujours
veux|voudrais .. toujours|jamais
on|nous ne @ jamais
on ne déploie|utilise|pousse|fusionne|met .. jamais
on déploie|utilise|écrit|met .. toujours
assure-toi|pense|veille .. toujours
""",
        "general": """
chaque|toute réponse|message|commit
dans|à toutes|tous les|tes|vos réponses|messages|commits
^ chaque|toute|toutes_les|tous_les réponse|réponses|message|messages|commit|commits|prix|dates|heures
^ chaque|toute|toutes_les|tous_les mesures|montants|fonction|fonctions|modification|modifications|mails
^ les prix|dates|heures|mesures|montants|réponses
tes|vos réponses|messages|mails
^ par défaut
^ en général
dans ce projet|dépôt
en mon nom
par réponse|message|commit
""",
        "gate": """
sans .. accord|approbation|permission|autorisation|consentement
sans .. confirmation|validation|demander|prévenir|confirmer
sans mon|ma|me _
avant que je|nous
tant que je|nous
jusqu'à ce que
avant .. demande|demandez|montre|montrez|préviens|prévenez
demande|demandez .. avant
attends|attendez mon|ma
sauf si je|on
uniquement avec mon
""",
        "case": """
^ chaque fois que
^ quand tu|vous|quelqu'un
^ lorsque tu|vous
^ avant de _
^ avant d'@
^ avant chaque
^ après chaque
^ si quelqu'un
^ si tu ne sais|trouves
^ en cas de
""",
        "duty": """
tu|vous dois|devez _
doit|doivent être|rester|contenir|avoir|suivre|passer|utiliser
est|sont obligatoire|obligatoires|requis|requise
assure-toi|assurez-vous
veille|veillez à
il faut
""",
        "deny": """
^ ne @ .. pas|rien|aucun|aucune
^ n'@ .. pas|rien|aucun|aucune
^ ne me|le|la|les|nous|lui|leur @ pas
^ ne @
^ n'@
^ pas de|d' _
^ pas de
^ aucun|aucune _
^ évite|évitez _
^ sans _
""",
        "act": """
^ @
^^ uniquement|seulement _
je veux|voudrais|souhaite|aimerais que tu|vous
""",
        "cap": """
mon|notre|le budget|limite|plafond .. est|: maintenant|désormais? de? #
^ budget|limite|plafond : #
^^ au plus|maximum # .. par
^^ maximum|minimum # .. par
pas plus de # .. par
au maximum|plus # .. par
réponses|messages|lignes|fonctions|mails .. moins|plus|maximum de #
réponses|messages|lignes|fonctions|mails .. dépasser|dépassent|excéder #
ne dépasse|dépassez|dépense|dépensez .. #
ne doit|doivent pas dépasser|excéder
moins|plus de # .. au total
je ne peux|veux pas dépenser|payer
sous # .. au total
""",
        "limit": """
moins|plus de #
maximum|minimum|max #
au maximum|plus|moins #
jusqu'à #
""",
        "prefer": """
je préfère|préférerais
j'aime mieux
je n'aime pas
je déteste
j'ai horreur
appelle-moi|appelez-moi
appelle|appelez moi _
tutoie|vouvoie|tutoyez - moi
ma préférence|mon_format|mon_langage préféré|va|est
je suis végétarien|végétarienne|vegan|végane|allergique|intolérant|intolérante|diabétique
je ne mange pas|que
je ne veux pas|aucun|plus|que
je veux toutes|tous les|tes réponses|dates|prix|mesures|heures en|avec
""",
    },
)
