//! Objects that a message describes: their names take the place of the description, and a change of an object to which the description
//! does not apply is not requested.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::Conversation;
use crate::kinds::Kind;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Description, Lexicon, Reading, clean, descriptions, is_small_talk, read};

use super::alike::left_open;
use super::{Next, reply};

/// The maximum number of objects that a description in the plural may stand for.
const MAX_DESCRIBED: usize = 5;

/// Returns a message with the names of the objects that it describes. `None` if it describes none that is known.
pub(super) fn with_names(message: &str, conversation: &Conversation) -> Option<String> {
    if message.contains("kubectl ") || message.contains("```") || message.contains(" -- ") {
        return None;
    }
    let lexicon = Lexicon::of(conversation);
    let raw: Vec<&str> = message.split_whitespace().collect();
    let found = descriptions(message, &lexicon);
    let name = |description: &Description| match refer::described(conversation, description, &lexicon) {
        Found::One(object) => name_of(&[object]),
        Found::Several(objects) if description.is_plural && objects.len() <= MAX_DESCRIBED => name_of(&objects),
        Found::Several(_) | Found::None => None,
    };
    let named = |is_meant: &dyn Fn(&Description) -> bool| -> Vec<(Description, String)> {
        let meant = found.iter().filter(|description| is_meant(description) && !is_remark(description, &raw));
        meant.filter_map(|description| Some((description.clone(), name(description)?))).collect()
    };
    let mut all = named(&|description| needs_name(description, &lexicon));
    if all.is_empty() {
        // "The web one", after a list of pods, keeps the kind of the list.
        all = named(&|description| is_of_list(description, conversation, &lexicon));
    }
    let [(description, name)] = &all[..] else { return None };
    let last = raw[description.span.end - 1];
    let ending: String = last.chars().rev().take_while(|c| ",.;:?!)".contains(*c)).collect();
    let ending: String = ending.chars().rev().collect();
    let possessive = if description.is_possessive { "'s" } else { "" };
    let name = format!("{name}{possessive}{ending}");
    let before = raw[..description.span.start].iter().copied();
    let after = raw[description.span.end..].iter().copied();
    Some(before.chain([&*name]).chain(after).collect::<Vec<&str>>().join(" "))
}

/// "And from its sibling": returns a message with the name of the only other pod of the workload. `None` if there are several or none.
pub(super) fn with_sibling(message: &str, conversation: &Conversation) -> Option<String> {
    let raw: Vec<&str> = message.split_whitespace().collect();
    let is_pair = |pair: &[&str]| {
        pair[0].eq_ignore_ascii_case("its")
            && matches!(
                &*clean(pair[1]).to_lowercase(),
                "sibling" | "twin" | "brother" | "sister" | "neighbour" | "neighbor"
            )
    };
    let at = raw.windows(2).position(is_pair)?;
    let Found::One(pod) = refer::focus(conversation, Verb::Logs, None, None) else { return None };
    let owner = pod.owner.clone().filter(|_| pod.kind == "pods");
    let shown =
        conversation.earlier.iter().flat_map(refer::shown_objects).chain(conversation.mentioned.iter().flatten());
    let mut others: Vec<&ObjectSummary> = Vec::new();
    for other in shown.filter(|other| other.is_like(&pod) && other.name != pod.name && other.owner == owner) {
        if owner.is_some() && !others.iter().any(|known| known.is_same(other)) {
            others.push(other);
        }
    }
    let [only] = others[..] else { return None };
    let name = name_of(std::slice::from_ref(only))?;
    let ending: String = raw[at + 1].chars().rev().take_while(|c| ",.;:?!)".contains(*c)).collect();
    let name = format!("{name}{}", ending.chars().rev().collect::<String>());
    Some(
        raw[..at].iter().copied().chain([&*name]).chain(raw[at + 2..].iter().copied()).collect::<Vec<&str>>().join(" "),
    )
}

/// Whether a description has a part that the words of a command cannot express.
fn needs_name(description: &Description, lexicon: &Lexicon) -> bool {
    let is_name = |word: &String| lexicon.linked(word).is_some() && !lexicon.has_namespace(word);
    let says_more = description.is_other
        || description.state.is_some()
        || description.position.is_some()
        || description.place.is_some()
        || !description.words.iter().all(is_name);
    let is_combined = !description.words.is_empty() && says_more
        || description.is_other && description.state.is_some()
        || description.position.is_some() && (description.state.is_some() || description.place.is_some());
    let says_what_it_is = description.is_predicate && (description.age.is_some() || description.is_plural);
    !description.is_excluded
        && !description.is_unclear
        && !says_what_it_is
        && (is_combined
            || !description.without.is_empty()
            || description.list.is_some()
            || description.is_indefinite
            || description.is_sized
            || description.node.is_some()
            || description.asked_for.is_some()
            || description.is_opposite
            || description.age.is_some()
            || description.is_plural && !description.words.is_empty() && description.kind.is_none())
}

/// Whether words describe one object of the newest list without its kind: "the web one", after a list of pods.
fn is_of_list(description: &Description, conversation: &Conversation, lexicon: &Lexicon) -> bool {
    let is_plain = description.kind.is_none()
        && !description.words.is_empty()
        && !description.is_plural
        && !description.is_excluded
        && !description.is_unclear
        && !description.is_predicate
        && !description.is_other;
    let list = conversation.earlier.iter().rev().map(refer::listed).find(|list| list.len() > 1);
    let Some(list) = list.filter(|_| is_plain) else { return false };
    matches!(refer::described(conversation, description, lexicon), Found::One(object)
        if list.iter().any(|own| own.is_same(&object)))
}

/// "Delete it, the staging one is enough": the description begins a statement, which does not say what to change.
fn is_remark(description: &Description, raw: &[&str]) -> bool {
    let next = raw.get(description.span.end).map(|word| word.to_lowercase().replace(['\'', '’'], ""));
    let starts_clause = description.span.start == 0
        || raw[description.span.start - 1].ends_with([',', '.', ';'])
        || matches!(raw[description.span.start - 1], "and" | "but" | "because" | "since" | "as");
    starts_clause
        && next.is_some_and(|next| {
            matches!(
                &*next,
                "is" | "isnt"
                    | "are"
                    | "arent"
                    | "was"
                    | "has"
                    | "works"
                    | "looks"
                    | "seems"
                    | "stays"
                    | "suffices"
                    | "can"
                    | "should"
                    | "keeps"
                    | "runs"
                    | "does"
                    | "will"
            )
        })
}

/// Returns how a message names objects: "pod web-1 in shop".
fn name_of(objects: &[ObjectSummary]) -> Option<String> {
    let first = objects.first().filter(|first| first.kind != "namespaces")?;
    let is_alike = |object: &ObjectSummary| object.kind == first.kind && object.namespace == first.namespace;
    let place = if first.namespace.is_empty() { String::new() } else { format!(" in {}", first.namespace) };
    let kind = Kind::find(&first.kind)?;
    let names: Vec<&str> = objects.iter().map(|object| &*object.name).collect();
    match &names[..] {
        [name] => Some(format!("{} {name}{place}", kind.singular)),
        names if objects.iter().all(is_alike) => Some(format!("{} {}{place}", kind.plural, names.join(" and "))),
        _ => None,
    }
}

/// Returns a question instead of changes of objects to which the descriptions of a message do not apply.
pub(super) fn checked(next: Next, message: &str, conversation: &Conversation) -> Next {
    let Next::Run(commands) = &next else { return next };
    let changes: Vec<&Command> =
        commands.iter().filter(|command| !command.verb.is_read() && command.name.is_some()).collect();
    let Some(first) = changes.first() else { return next };
    let lexicon = Lexicon::of(conversation);
    let reading = read(message, &lexicon);
    let verb = reading.verb.filter(|verb| !verb.is_read()).unwrap_or(first.verb);
    // "Delete that", after a question where a pod runs: never the node.
    let is_place = |command: &&Command| {
        let kind = command.kind.as_deref().and_then(Kind::find).map(|kind| kind.plural).unwrap_or_default();
        let names_it = reading.kind.as_ref() == Some(&kind)
            || command.name.as_ref().is_some_and(|name| message.to_lowercase().contains(&name.to_lowercase()));
        command.verb == Verb::Delete && matches!(&*kind, "nodes" | "namespaces") && !names_it
    };
    let names_rest = reading.says("the rest") && reading.pick.is_none();
    if changes.iter().any(is_place) || names_rest {
        return reply(answers::ask_what(verb));
    }
    if is_excluded(&changes, &reading)
        || is_elsewhere(&changes, &reading, conversation)
        || reading.count_of_objects().is_some_and(|count| count != changes.len())
    {
        return reply(answers::ask_what(verb));
    }
    if let Some(objects) = left_open(&reading, conversation) {
        return reply(answers::ask_which(&objects));
    }
    let raw: Vec<&str> = message.split_whitespace().collect();
    let meant: Vec<Description> = descriptions(message, &lexicon)
        .into_iter()
        .filter(|description| !description.is_excluded && !is_remark(description, &raw))
        .collect();
    // "Restart the nginx one", after a list of which several run nginx: not an object elsewhere that is called so.
    let list = conversation.earlier.iter().rev().map(refer::listed).find(|list| list.len() > 1).unwrap_or_default();
    for description in meant.iter().filter(|description| description.kind.is_none() && !description.words.is_empty()) {
        if let Found::Several(objects) = refer::described(conversation, description, &lexicon)
            && !description.is_plural
            && objects.iter().all(|object| list.iter().any(|own| own.is_same(object)))
            && !changes.iter().any(|command| list.iter().any(|own| Some(&own.name) == command.name.as_ref()))
        {
            return reply(answers::ask_which(&objects));
        }
    }
    let applies = |description: &Description| {
        let is_clear = !description.is_unclear || description.position.is_some() || reading.pick.is_some();
        is_clear && changes.iter().any(|command| applies_to(description, command, conversation, &lexicon))
    };
    if meant.is_empty() || meant.iter().any(applies) {
        return next;
    }
    match meant.iter().map(|description| refer::described(conversation, description, &lexicon)).next() {
        Some(Found::Several(objects)) => reply(answers::ask_which(&objects)),
        _ => reply(answers::ask_what(verb)),
    }
}

/// "Everything except web", "delete it, keep the mailer": whether a change is of an object that the message excludes.
fn is_excluded(changes: &[&Command], reading: &Reading) -> bool {
    let words = &reading.words;
    let excludes = |word: &str| matches!(word, "except" | "besides" | "excluding" | "keep" | "spare");
    let excluded = words.iter().enumerate().filter(|(_, word)| excludes(word));
    let mut names =
        excluded.flat_map(|(at, _)| words[at + 1..].iter().take(2)).filter(|word| reading.names.contains(word));
    let is_of = |command: &&&Command, name: &String| {
        let own = command.name.as_deref().unwrap_or_default();
        crate::cluster::likeness(own, name).is_some_and(|fit| fit < 3)
    };
    names.any(|name| changes.iter().any(|command| is_of(&command, name)))
}

/// Whether a message says "in" before a namespace in which none of the changes is.
fn is_elsewhere(changes: &[&Command], reading: &Reading, conversation: &Conversation) -> bool {
    let named: Vec<&String> = reading
        .words
        .windows(2)
        .filter(|pair| pair[0] == "in" && conversation.namespaces.contains(&pair[1]))
        .map(|pair| &pair[1])
        .collect();
    let [place] = named[..] else { return false };
    let has_source = changes.iter().any(|command| matches!(command.verb, Verb::SetImage | Verb::Apply));
    let is_there = |command: &&Command| {
        command.namespace.as_ref().is_none_or(|namespace| namespace == place || namespace.is_empty())
    };
    !has_source
        && !reading.remarks_on_namespace()
        && !reading.has_any(&["like", "as", "than"])
        && !changes.iter().any(is_there)
}

/// Whether nothing in a description contradicts that the object of a command is meant.
fn applies_to(description: &Description, command: &Command, conversation: &Conversation, lexicon: &Lexicon) -> bool {
    let namespace = command.namespace.clone().unwrap_or_default();
    let (kind, name) = (command.kind.clone().unwrap_or_default(), command.name.clone().unwrap_or_default());
    let kind = Kind::find(&kind).map_or(kind, |kind| kind.plural);
    let own = ObjectSummary { kind, name, namespace, ..ObjectSummary::default() };
    let shown = conversation.earlier.iter().rev().flat_map(refer::shown_objects);
    let known: Vec<&ObjectSummary> = shown.chain(conversation.mentioned.iter().flatten()).collect();
    let is_same = |object: &ObjectSummary| object.is_same(&own);
    // A description of a pod also means the workload that owns it.
    let is_part = |object: &ObjectSummary| {
        object.namespace == own.namespace
            && object.owner.as_ref().is_some_and(|(kind, name)| (kind, name) == (&own.kind, &own.name))
    };
    let parts: Vec<&ObjectSummary> =
        known.iter().copied().filter(|object| is_same(object) || is_part(object)).chain([&own]).collect();
    let fits = |word: &String| {
        is_small_talk(word)
            || crate::kinds::kind_word(word).is_some()
            || parts.iter().any(|object| refer::fit_of(object, word, lexicon).is_some())
            || command.image.as_ref().is_some_and(|image| image.contains(word.as_str()))
    };
    let is_meant = |found: Found| match found {
        Found::One(object) => is_same(&object) || is_part(&object),
        Found::Several(objects) => objects.iter().any(|object| is_same(object) || is_part(object)),
        Found::None => false,
    };
    let counts_some = description.position.is_some() && !description.words.is_empty();
    if counts_some
        || description.is_sized
        || description.age.is_some()
        || description.is_opposite
        || description.asked_for.is_some()
    {
        return is_meant(refer::described(conversation, description, lexicon));
    }
    // A state that the conversation shows must be that of the object.
    let is_shown =
        |object: &&&ObjectSummary| object.restarts.is_some() || object.replicas.is_some() || !object.state.is_empty();
    let shown: Vec<ObjectSummary> = parts.iter().filter(is_shown).map(|object| (*object).clone()).collect();
    let is_in_state = description
        .state
        .is_none_or(|state| state.is_superlative() || shown.is_empty() || !state.filter(&shown).is_empty());
    let is_of_list = |word: &String| {
        crate::kinds::kind_word(word).is_some() || refer::fit_of(&own, word, lexicon).is_some() || is_small_talk(word)
    };
    let is_on = |node: &String| parts.iter().any(|object| object.kind == "pods" && object.node == *node);
    is_in_state
        && description.node.as_ref().is_none_or(is_on)
        && description.list.as_ref().is_none_or(is_of_list)
        && description.words.iter().all(fits)
        && description.place.as_ref().is_none_or(|place| *place == own.namespace)
        && !description.without.iter().any(|word| refer::fit_of(&own, word, lexicon).is_some_and(|fit| fit < 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Outcome;
    use crate::conversation::{Exchange, Step};

    fn pod(name: &str, owner: &str, restarts: u64, node: &str) -> ObjectSummary {
        ObjectSummary {
            kind: "pods".to_owned(),
            name: name.to_owned(),
            namespace: "shop".to_owned(),
            owner: Some(("deployments".to_owned(), owner.to_owned())),
            restarts: Some(restarts),
            state: "Running".to_owned(),
            node: node.to_owned(),
            ..ObjectSummary::default()
        }
    }

    fn listed(objects: Vec<ObjectSummary>) -> Conversation {
        let command = Command { kind: Some("pods".to_owned()), ..Command::new(Verb::Get) };
        let outcome = Outcome { command: command.clone(), text: String::new(), objects };
        let step = Step { command, outcome: Some(outcome), error: None };
        Conversation {
            earlier: vec![Exchange { said: "list pods in shop".to_owned(), steps: vec![step], ..Exchange::default() }],
            namespaces: vec!["shop".to_owned(), "blue".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        }
    }

    fn pods() -> Conversation {
        listed(vec![
            pod("cart-1", "cart", 3, "node-a"),
            pod("cart-2", "cart", 14, "node-b"),
            pod("web-1", "web", 3, "node-b"),
        ])
    }

    #[test]
    fn a_description_is_replaced_by_the_name_of_the_only_object_that_fits() {
        let named = |message: &str| with_names(message, &pods());
        assert_eq!(
            named("delete the cart pod with 3 restarts, please").as_deref(),
            Some("delete pod cart-1 in shop, please")
        );
        assert_eq!(named("logs of the cart one on node-b").as_deref(), Some("logs of pod cart-2 in shop"));
        assert_eq!(named("describe the one that's not a cart").as_deref(), Some("describe pod web-1 in shop"));
        assert_eq!(named("restart whichever has 14 restarts").as_deref(), Some("restart pod cart-2 in shop"));
        // Two fit, none fits, or the description rules something out.
        assert_eq!(named("delete the other cart pod"), None);
        assert_eq!(named("delete the cart one on node-c"), None);
        assert_eq!(named("not the cart one on node-b"), None);
    }

    #[test]
    fn a_change_is_not_requested_for_an_object_that_the_words_do_not_describe() {
        let delete = |message: &str, name: &str| {
            let command = Command::new(Verb::Delete).on("pods", name, Some("shop"));
            matches!(checked(Next::Run(vec![command]), message, &pods()), Next::Run(_))
        };
        assert!(delete("delete the cart pod with 3 restarts", "cart-1"));
        assert!(!delete("delete the cart pod with 3 restarts", "cart-2"));
        assert!(!delete("delete the cart pod on node-b", "cart-1"));
        assert!(!delete("delete the biggest cart pod", "cart-1"));
        assert!(!delete("delete the two you showed", "cart-1"));
        assert!(!delete("delete the web pod in blue", "web-1"));
        assert!(!delete("delete it, keep cart-1", "cart-1"));
        assert!(delete("delete it", "cart-1"));
    }
}
