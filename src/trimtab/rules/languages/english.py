"""English."""

from __future__ import annotations

from trimtab.rules.language import Language

__all__ = ["ENGLISH"]

ENGLISH = Language(
    code="en",
    common="""
the a an and or of to in is are was be been i you he she it we they my your our this that these those
for with on at from by not no do does did don't have has had will would can could should must never
always please if when what which who how why there here but so as all any every only use me us them than
then now just more
""",
    verbs="""
abbreviate accept act add address adopt aim align allow alphabetize analyze annotate answer append apply
approve archive ask assign assume attach avoid back backup base be begin book break bring build bump
bypass cache calculate call cancel capitalize capture cc change check choose cite clean clear click
clone close code collect combine comment commit compare compile compress compute configure confirm
connect consider contact continue convert copy correct count cover create credit cut debug declare
default define delegate delete deliver deploy describe design disable disclose discuss display divide do
document double download draft drop edit email emit enable encode encrypt end enforce ensure enter
escalate escape estimate evaluate examine exceed exclude execute expand explain explore export expose
extend extract fetch fill filter find finish fix flag focus follow force format forward generate get
give go group guess hand handle hardcode help hide highlight ignore implement import improve include increase
indent index inform initialize insert inspect install introduce invent invoke keep label launch leave
let limit link list load lock log look lowercase make mark match measure mention merge message migrate
minimize mix mock modify monitor move name note notify number offer omit open optimize order organize
output overwrite own paginate paraphrase parse pass paste pay perform pick pin place plan point post
prefer prefix prepare present preserve press print prioritize process produce promise prompt propose
provide publish pull push put quote raise read rebase rebuild recommend record reduce refactor refer
reference refuse regenerate reject release rely remember remind remove rename render reorder repeat
rephrase replace reply report request require reset resolve respect respond restart restate restore
restrict retry return reuse reveal revert review revise rewrite rotate round route run sanitize save say
scan schedule search secure select send separate set share shorten show sign simplify skip sort speak
specify spell spend split stage standardize start state stay stick stop store stream structure style
submit suggest suffix summarize summarise support surround suppress swap switch take talk target tell
terminate test tie touch track transfer translate treat trim trust truncate try turn type uninstall
update upgrade upload uppercase use utilize validate verify wait warn wear work wrap write
""",
    bases="""
access ally assess bless bully bypass canvas cling comply cross dismiss dispossess dress embed express
feed fling fly harass heed imply kiss mass mess miss multiply oppress ping possess proceed rally
repossess repress ring sed seed shed shred sing speed sting stress string succeed suppress swing tally
toss trespass undress weed wring
""",
    numbers="""
one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
seventy eighty ninety hundred thousand million
""",
    joints="""
please but so kindly just also remember important note hey hi ok okay thanks
""",
    links="and or then",
    idle="""
the a an to of for in on at by with from as into is are be it its my me i we you your our this that
these those please always never not do don't must should shall may can will ever every all each any only
just now actually instead now on going forward from rest session conversation when if and or so but then
make sure want would like prefer rather user hard constraint rule important update no more than under
over below within most least up per keep stay max maximum use using instead it's new set
""",
    classes=(
        "english german french"
        " spanish italian portuguese dutch chinese mandarin japanese korean russian arabic hindi"
        " polish swedish turkish",
        "metric imperial",
        "tabs spaces tab space",
        "utc gmt est pst cet pacific eastern central",
        "json yaml toml xml csv markdown html",
        "celsius fahrenheit kelvin",
        "formal informal casual",
        "bullets prose bullet",
        "usd eur gbp dollars euros pounds",
        "morning evening afternoon aisle window economy business",
        "pytest unittest nose",
        "npm yarn pnpm bun",
        "british american",
    ),
    slots="in use using me as to",
    additions="also too additionally well another furthermore besides plus",
    negations="not never don't dont no cannot can't mustn't shouldn't avoid nobody without",
    tags="ok okay please right understood alright deal yes thanks clear",
    cues={
        "void": """
need|needs permission|approval to
that|which|who is|are not? allowed|forbidden|permitted|prohibited|acceptable
^ the? user|customer|client wants to|you|me|us|a|an|help
^ call me when|at|on|if|back|tomorrow|later|now|asap|before|after|tonight|today
i|i'd|i_would prefer a|some? more|better|higher|bigger|larger|different|another
i|we need|require approval|permission|consent|confirmation|authorization
never mind
your budget|limit|cap
may not be|have|need|want|know
if you need|want|wish|would|like|have
whenever you're|you_are|it|that ready|suits|works
never again
never forget the|that|when|how
never *ed
^^ always|never *s
never been|had|was|seen|heard|knew|thought|got|said|went|made
never took|gave|felt|found|met|did|saw|too|really|quite|came
^^ never|always *ing
^^ never|always the|a|an|one|two|any|my|your|our|their|his|her|i|i'm|i'd|i've|you|he|she|it|we|they|me|that
^^ never|always there|here|where|when|what|who|how|why|if|as|so|such|very|this|these|those|to|in|on|at|by|of
^^ never|always for|from|with|without|under|over|about|after|before|during|since|until|than|then|and|or|but
^^ never|always not|once|yet|ever|only|just|even|almost|still|also|much|more|less|enough|forever|gonna
^^ never|always can|could|will|would|should|may|might|must|does|am|are|be_a|had|have|having
^^ never|always ate|became|began|bit|blew|bought|broke|brought|built|came|caught|chose|drank|drew|drove|fell
^^ never|always fed|flew|forgot|fought|got|grew|had|held|hid|kept|knew|laid|learnt|led|lent|lost|made|meant
^^ never|always paid|ran|rang|rode|rose|sang|sat|sent|shot|slept|sold|spent|spoke|stole|stood|stuck|swam|swore
^^ never|always taught|told|thought|threw|understood|woke|won|wore|wrote|heard|spelt|dealt
^^ never|always been|begun|bitten|blown|born|broken|chosen|done|driven|drunk|eaten|fallen|flown|forgiven
^^ never|always forgotten|frozen|given|gone|gotten|grown|hidden|known|ridden|risen|seen|shown|shaken|spoken
^^ never|always stolen|sworn|taken|thrown|woken|worn|written
^^ never|always none|true|false|null|nothing|nobody|something|someone|usd
^^ never|always afraid|alone|available|aware|bad|best|better|big|boring|busy|certain|cheap|close_to|cold
^^ never|always cool|curious|delicious|different|difficult|dull|eager|early|easy|enough|expensive|false|far
^^ never|always fine|free|full|funny|glad|grateful|hard|high|hot|hungry|important|impossible|keen
^^ never|always late|long|low|new|nice|old|on_time|perfect|possible|pretty|proud|quick|ready|right|sad|safe
^^ never|always same|short|sick|simple|sorry|strange|sure|thankful|tired|true|ugly|useful|weird|worse
^^ never|always worst|worth|wrong|young|fun|people|room|time|hope|love|loved|smart|welcome|beautiful
^^ always a|the|nice|good|great|wanted|had|happy|been|was|fun|love|loved|so|remember
always *ed
don't|dont worry|know|think|have|mind|care|understand|remember
don't|dont see|hesitate|forget|like|believe|feel|blame|be
don't get me wrong
don't you|we|they
do not have|know|remember|need|think|understand|worry|hesitate
^ no problem|worries|idea|one|thanks|thank|need|matter|doubt
^ no way|wonder|longer|i|that's|it's|wait|sorry|please|not
^ no ,
^ no .
^ no rush|hurry|luck|offense|clue|big|bother|it|that|the|my|we|you|he|she|there|luck|and|but|longer|such
you|he|she|it|that|this|they must|should be
i|he|she|they|there|it must|should
must have *ed
there has|have|needs to
you should see|know|try|come|visit|have|hear|meet|taste
i|he|she|they|it have|has|had|need|needs|needed|want|wants|wanted to
when you're|you_are|you|you've|you_have done|ready|finished|back|home|get|can|say|said|were|was|see
i'd|i_would rather|prefer not say
prefer not to say
do|would you prefer|rather|like
rule of thumb
use case|cases
work out
^ report|test|note|state|order|list|log|record|call is|are|was|were|shows|says|has|failed
^ work|show|plan|name|book|check|start|end|answer is|are|was|were|shows|says|has|failed
^ answer|name|note|order|list|record|plan|report|state :
^ code|index|test|number|type|message|log|link|comment|label :
^ let|tell me|us know|about|see|guess|think
^ help me
game|chess|card rules
limit|limits|cap of|on what
even if you
rules of _ : 
""",
        "report": """
says|states|stated|claims|claimed|wrote|insists|insisted|mentions|mentioned|warned|warns
manager|boss|teacher|client has|have|had given|gave|asked
^ he|she|they|it|mom|dad|everybody|everyone|people said|told|tells|say|recommend|recommends|suggest
boss|manager|wife|husband|friend|colleague|teacher|doctor|lawyer said|told|asked|wants|wanted|tells|thinks
mother|father|sister|brother|client said|told|asked|wants|wanted|tells|thinks
customer|team|lead|agent|representative said|told|asked|wants|wanted|tells|thinks
readme|docs|documentation|article|book|paper|policy|law said|told|say|tells|reads|recommends|recommend
email|letter|sign|guide|manual|page|post|note said|told|say|tells|reads|recommends|recommend
according to
was|were|been|got told
^^ i understand|realize|realized|know|see|thought|heard that|the|your|it|changes|you|there|this
^^ i read|noticed|think|guess|believe|saw|assume that|the|your|it|changes|you|there|this
^^ unfortunately|apparently|supposedly|reportedly|allegedly
she|he|they said|asked|told|replied|shouted|whispered
used to
the rule was|says
""",
        "fiction": """
^ pretend|imagine
^ suppose|assume you|that|we
role play|playing
roleplay
^ write|tell|create|compose|invent|make|give|generate .. story|poem|song|tale|novel|dialogue|scene
^ write|tell|create|compose .. screenplay|fable|limerick|joke|riddle|haiku|lyrics|puzzle
^ invent|make|give|generate .. screenplay|fable|limerick|joke|riddle|haiku|lyrics|puzzle
in|of the story|game|film|movie|novel|tale|play|poem
once upon a time
the character|characters|narrator|hero|protagonist|villain
let's play
riddle
""",
        "handover": """
translate|proofread|summarize|summarise|rewrite|rephrase|paraphrase|analyze .. :
analyse|classify|extract|review|explain|edit|correct|improve .. :
following|attached text|email|mail|article|document|message|paragraph|passage
following|attached letter|conversation|transcript|sentence|sentences|readme|issue|policy
following|attached story|poem|essay|abstract|prompt|log|logs|output
following|attached excerpt|review|reviews|snippet|context|statement|content|file|data
text|email|article|document|message|paragraph|passage|letter below
conversation|transcript|readme|prompt|context|log|essay|issue below
here's|heres .. text|email|mail|article|document|message|letter|conversation|transcript|readme|log|output
here's|heres .. error|policy|prompt|excerpt|essay|file|page|issue|code|context|content|draft|post
here is|are .. text|email|mail|article|document|message|letter|conversation|transcript|readme|log|output
here is|are .. error|policy|prompt|excerpt|essay|file|page|issue|code|context|content|draft|post
^^ context|transcript|article|document|readme|email|output|log|logs|error|text|input|source :
^^ excerpt|abstract|observation|observations|issue|traceback :
^^ description|passage|content|summary|file|policy|handbook :
description is|was :
we're|we_are currently solving
""",
        "claim": """
ignore|disregard|forget|override .. earlier|previous|prior|preceding|above|your instructions|rules|prompt
ignore|disregard|forget|override all|any|your instructions|rules|guidelines
^^ system|developer|admin|administrator|operator :
^^ system|developer|admin|administrator|operator note|message|prompt|override|instruction|notice|update :|(|-
note|message|attention|instruction|instructions to|for|, the? ai|assistant|ai_assistant|model|llm|chatbot :|,
^^ attention ,? ai|assistant|ai_assistant :|,
the ai|assistant|chatbot must|should|shall
instruction|instructions|message|note|order from the|your operator|system|developer|developers|administrator
from the administrators|administrator|developers|developer|operator|operators|vendor of|:
new|updated system prompt|instructions :
""",
        "permit": """
you may|can now|again
you're|you_are allowed|free to|now
now you may|can
it's|it_is ok|okay|fine|allowed now|again|to
forget|ignore|disregard|drop what|everything|anything|all|my|the|about .. i|earlier|previous|last|rule
forget|ignore|disregard|drop what|everything|anything .. rules|instruction|instructions|said|above
forget|ignore|disregard|drop all|my|the|about .. rules|instruction|instructions|said|above
no longer have|need|needs to
you don't|needn't have|need to
never said
scratch that
""",
        "ask": """
^ can|could|would|will you
^ would you mind
^ may|can i ask|request
""",
        "once": """
this time|once
just|only once
for now
for this one|task|answer|question|reply|request|step|message
in this answer|reply|response|message|email|poem|story|case|turn|step
today|tonight|yet|again
right now
at the|this moment
final answer|output|result
this step
these|those two|three|four|five|six|_ steps|tasks|calls|tool|files|changes
next step
answer below
""",
        "label": """
important|hard|strict|firm|key constraint|rule|requirement|limit|restriction
house|ground|golden|standing|general|standard rule|rules|order|orders|instruction|instructions
^^ rule|constraint|policy|requirement|convention|reminder :
^^ constraint|rule # :
one|my|our|another rule|policy|convention
non negotiable
safety rule
team convention|policy|rule
""",
        "heading": """
rules|guidelines|conventions|preferences|constraints|dos|don'ts
house style
style guide
ground rules
rules to follow
""",
        "ban": """
must not|never
mustn't
you shall not
may not @
is|are strictly? not? forbidden|prohibited
is|are strictly? not allowed|permitted|acceptable
isn't|aren't allowed|permitted|acceptable
off limits
under no circumstances
under no circumstance
on no account
no_one|nobody .. may|must|should
never , ever
never ever
you can never @
should|shall never
""",
        "duration": """
from now on|onward|onwards
from here on
from this point|moment|day on|onward|onwards|forward
going forward
for|during|throughout|in this|our entire|whole? conversation|session|chat|project|trip
for|during|throughout the rest|remainder of the|this|our conversation|session|chat|project|trip|day
for|during|throughout the entire|whole conversation|session|chat|project|trip|day
during|throughout the conversation|session|chat|project
until further notice
until|unless i|we say|tell|ask|decide|change .. otherwise
unless i|we ask|tell|say
henceforth
at all times
all|any future|subsequent
without exception|exceptions
no exceptions
in all cases
^ as of today|now|tomorrow
no matter what
""",
        "always": """
^ never @
^ always @
^ never|always *ly @
^^ never +
^^ always + the|a|an|my|your|our|their|his|her|its|any|all|every|each|both|it|them|him|me|us|this|these|those
^^ always + to|from|for|in|on|at|by|with|before|after|when|if|as|via|through|using|only|first
^^^ always +
please never +
you must|should|need to?|have? to always|never
we always|never @
can|could|would|will you please? always|never @
must|should|shall always
make|be sure .. always|never
^ remember|ensure .. always|never
don't|do_not ever
, ever .
i always|never want|need|prefer|expect you|my|a|the|to
^ we @ .. in this|our|the project|repo|repository|codebase|team|company
i want .. always|never
""",
        "general": """
you can|should|must|may only .. at a time
you can only .. _ _ at a time
exactly one _ per|a
every|each|any reply|answer|response|message|suggestion|recommendation
every commit message
keep|make|write|convert|format|give|put|end|start|sign all your? replies|answers|responses|messages|commits
in|to|for|with all your? replies|answers|responses|messages|commits|requests|questions
^ every|each|all|any reply|replies|answer|answers|response|responses|message|messages|output|outputs
^ every|each|all|any commit|commits|time|times|amount|amounts|price|prices|date|dates|email|emails
^ every|each|all|any measurement|measurements|unit|units|number|numbers|currency|currencies|invoice|invoices
^ every|each|all|any pr|prs|branch|branches|function|functions|test|tests|comment|comments|endpoint|endpoints
^ every|each|all change|changes|report|reports
your replies|answers|responses|messages|outputs|emails|commits
your|my code|commit messages
^ answers|replies|responses|commits|names
report|express|state|quote all times|amounts|prices|dates|measurements in|as
^ by default
^ in general
^ in the future
in future
in our|this|my project|repo|repository|codebase ,? we|use|always|never
on my behalf
my standing
per reply|answer|response|message|commit
^ when you recommend|give|cite|write|answer|reply|respond|suggest|mention|quote|send|see
^ when you finish a|any|each
^ when you book|commit|deploy|name|talk|refer|use|add|change|make|create|edit|encounter
""",
        "gate": """
without .. approval|permission|consent|confirmation|authorization|authorisation|sign-off|asking|confirming
without .. checking|telling|review|agreement|approving|knowing|okay|ok|go
until|unless i|we|someone|somebody have|has|say|tell|approve|approves|confirm|confirms
until|unless i|we|someone|somebody review|reviews|agree|agrees|give|gives|explicitly
until|unless the user|customer|team|owner|client|boss
unless .. told|asked|approved|approves|approve|says|agrees|confirmed|confirms|explicitly
ask|check with? me|us before|first
ask me? for? .. before
wait for my|our|explicit
need|needs|require|requires approval|permission|consent|confirmation|sign-off|authorization|a_second
before you .. show|ask|tell|check|confirm .. me
before *ing .. ask|confirm|check .. me
only after i|we|my
only .. if|when i|we
only with my|our|explicit
""",
        "case": """
^ whenever
whenever you|i|we
^ every|each|any time
every|each|any time you|i|we
^ when *ing
when|if the user|customer asks
^ when|before|after a|an|any|each|every|someone|anyone
before you send|make|change|commit|push|delete|edit|touch|merge|deploy
^ after you|each|every
^ if a|an|any user|customer|client|caller|person|request|question|step|tool|command|build
^ if anyone|anybody|someone|somebody|anything
^ if i ever|ask|say|mention|forget
^ if you ever|don't_know|do_not_know|are_not_sure|are_unsure|aren't_sure
if you're|i'm unsure|not_sure
if in doubt|_ unsure
when in doubt
^ in case of
""",
        "duty": """
you must|shall|should|need|have|ought|are to? @
you can|may only @
^ must _
must be|have|use|stay|remain|include|contain|follow|match|start|begin|end|keep|pass|run|@
needs|need|has|have to @
needs|need|has|have to be|stay|remain
needs|has to stay|remain|be
is|are required|mandatory|obligatory|compulsory|requires
should be *ed
should be in
be sure|certain to
need|needs|require|requires approval|permission|consent|confirmation|review|sign-off|a_second|two
make sure|certain
^ ensure
^ remember to
""",
        "deny": """
^ do_not|don't|dont @
^^ do_not|don't|dont _
^ avoid _
^ refrain from
^ stop|quit *ing
^ no _
^ zero _
^ without *ing
^ leave .. alone|untouched|out|unchanged
^ stay away from
you can't|cannot|shouldn't @
you should|may|can not @
be careful not to
i don't|do_not want you to?
""",
        "act": """
^ @
^^ only _
^ be *
i|we want|need|ask|expect|require you to
i'd|i_would like|love|prefer you to
i'd|i_would like|want you to
^ let's @
""",
        "cap": """
my|our|total|travel|project|hard budget|limit|cap|ceiling .. is|are|of|at|: now? #
^ the? budget|cap|ceiling .. is|are|of|at|: now? #
i|we have .. budget .. of|: #
hard limit|cap is|: .. #
spending budget|limit|cap|ceiling is .. #
deadline is
capped|limited|restricted to|at #
limit .. to # .. per|a|each
no|not more than # .. per|every|in_total
at most # .. per|every|in_total
^^ no more than # .. per|each
^^ at most # .. per|each
^^ max|maximum|minimum|min of? # .. per|each
answers|replies|responses|messages|lines|functions|commits .. under|below|within|most #
answers|replies|responses|messages|lines|functions|commits .. than|to|exceed #
keep|hold .. spend|spending|cost|costs|total|price|bill .. under|below|within #
spend|spending|cost|costs|total|price|bill|fare .. not|doesn't|don't|to exceed #
^ spend no|at|less more|most|than
^ stay|remain under|below|within #
within a budget of
can't|cannot|won't|don't|couldn't|not spend|pay|afford|exceed|go|want .. over|above|beyond|than|exceed #
i|we can only spend|afford|pay up? to? #
never exceed|spend|go .. #
never exceed
must|should|may|can not exceed
""",
        "limit": """
at most|least #
no|not more|fewer|less|longer than #
under|below|within|above|over #
up to #
max|maximum|minimum of? #
more|less|fewer than #
exactly|only #
between # and #
# or less|fewer|more
exceed
""",
        "prefer": """
i|we much|really|strongly|generally|usually|always|also? prefer
i'd|i_would much|strongly|really? prefer
i'd|i_would much? rather
^ prefer _
i like my|it_when|when_you|things|to_have|short|long
i|we hate|dislike|love it? when
i can't|cannot stand
i don't|do_not like it|when|to_be|being|your|my|long|short
my|our preference|preferences is|are
my|our|user's|customer's preferred|favourite|favorite .. is|are|:
user's|customer's .. style|language|format|tone|timezone|unit|units|day is|: _
^ call me _
address me as
my pronouns are
i'm|i_am a? strict|strictly? vegetarian|vegan|allergic|diabetic|celiac|coeliac
i'm|i_am a? strict|strictly? pescatarian|kosher|halal|colour|color|gluten|lactose
^ the? user|customer|client prefers|wants|dislikes
i don't|do_not want you to?
i want|like all|every|each|your replies|answers|responses|answer|reply|measurements|units|times|dates|commits
i really|actually|just|also? don't|do_not|never want any|your|to_fly
i really|actually|just|also? don't|do_not|never want to_use|to_include|to_receive|to_pay
i really|actually|just|also? don't|do_not|never want to_be *ed
""",
    },
)
