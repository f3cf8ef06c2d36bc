//! Nodes that a message means without their name: "that node", "what else runs there", "the box with the mailer on it"; and the pods of a
//! node.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Step};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Lexicon, Reading, clean, descriptions, read};

use super::{Next, Planner, reply};

/// Nouns for a node.
const NOUNS: [&str; 6] = ["node", "box", "machine", "host", "server", "vm"];
/// Words between the noun and the name in "the node that web runs on".
const CONNECTIVES: [&str; 22] = [
    "the",
    "pod",
    "deployment",
    "its",
    "on",
    "it",
    "is",
    "runs",
    "running",
    "lives",
    "sits",
    "of",
    "where",
    "with",
    "that",
    "which",
    "has",
    "hosting",
    "hosts",
    "under",
    "in",
    "thats",
];
/// The maximum number of words of a clause that says which node is meant.
const MAX_CLAUSE: usize = 7;
/// The maximum number of words of "on what node?", which is about what was spoken of.
const MAX_WORDS_OF_POINTING: usize = 4;
/// The maximum number of pods whose nodes are compared.
const MAX_COMPARED: usize = 5;

/// A node that the conversation is about.
struct Spoken {
    name: String,
    /// Whether it was itself spoken of, not only a pod that runs on it.
    is_topic: bool,
}

/// Returns a message with the names of the nodes that it means by other words. `None` if it means none that is known.
pub(super) fn with_node(message: &str, conversation: &Conversation) -> Option<String> {
    if message.contains("kubectl ") || message.contains("```") || message.contains(" -- ") {
        return None;
    }
    let raw: Vec<&str> = message.split_whitespace().collect();
    let plain: Vec<String> = raw.iter().map(|word| clean(word).to_lowercase().replace(['\'', '’'], "")).collect();
    let word = |at: usize| plain.get(at).map_or("", String::as_str);
    let ends = |at: usize| raw.get(at).is_none_or(|raw| raw.ends_with([',', '.', ';', ':', '?', '!', ')']));
    // "What runs on the bad one?", after a list of nodes.
    let lexicon = Lexicon::of(conversation);
    let described = descriptions(message, &lexicon).into_iter().find_map(|description| {
        let is_place = description.span.start > 0 && word(description.span.start - 1) == "on";
        match refer::described(conversation, &description, &lexicon) {
            Found::One(node) if is_place && node.kind == "nodes" && !description.is_unclear => {
                Some((description.span, node.name))
            }
            _ => None,
        }
    });
    if let Some((span, node)) = described {
        return Some(replaced(&raw, span, &format!("node {node}")));
    }
    let spoken = spoken_of(conversation);
    let compares = plain.iter().any(|word| {
        matches!(
            &**word,
            "both" | "different" | "they" | "them" | "these" | "those" | "two" | "all" | "as" | "replicas"
        )
    });
    for at in 0..raw.len() {
        let is_noun = NOUNS.contains(&word(at));
        // "That node", "this box".
        let points = at > 0 && is_noun && matches!(word(at - 1), "that" | "this" | "same");
        // "There", "on it", "on that one", after a question about a node.
        let is_there = word(at) == "there"
            && at > 0
            && !matches!(
                word(at - 1),
                "is" | "are"
                    | "was"
                    | "were"
                    | "it"
                    | "they"
                    | "still"
                    | "out"
                    | "over"
                    | "up"
                    | "if"
                    | "in"
                    | "go"
                    | "been"
            )
            && (ends(at)
                || at + 1 == raw.len()
                || matches!(word(at + 1), "too" | "now" | "as" | "again" | "then" | "right"))
            || word(at) == "there" && at == 0 && raw.len() == 1;
        let on_it = at > 0
            && word(at - 1) == "on"
            && (word(at) == "it"
                || word(at) == "there"
                || matches!(word(at), "that" | "this") && word(at + 1) == "one");
        let (start, end) = match () {
            () if points && word(at - 1) == "same" && compares => continue,
            () if points => {
                let is_same = at > 1 && word(at - 1) == "same" && matches!(word(at - 2), "the" | "that");
                (at - 1 - usize::from(is_same), at + 1)
            }
            () if on_it => (at - 1, at + 1 + usize::from(word(at + 1) == "one")),
            () if is_there => (at, at + 1),
            () => {
                let may_be_one = word(at) == "one" && names_node_verb(&plain);
                let article = at > 0 && matches!(word(at - 1), "the" | "that");
                if article
                    && (is_noun || may_be_one)
                    && let Some((end, node)) = of_clause(&plain, &raw, at, conversation)
                {
                    return Some(replaced(&raw, at - 1..end, &format!("node {node}")));
                }
                continue;
            }
        };
        let Some(spoken) = spoken.as_ref().filter(|spoken| points || spoken.is_topic) else { continue };
        let name = if points { format!("node {}", spoken.name) } else { format!("on node {}", spoken.name) };
        return Some(replaced(&raw, start..end, &name));
    }
    None
}

fn names_node_verb(words: &[String]) -> bool {
    words.iter().any(|word| matches!(&**word, "cordon" | "uncordon" | "drain" | "evacuate"))
}

/// Returns a message with other words in the place of some, which keep their punctuation.
fn replaced(raw: &[&str], span: std::ops::Range<usize>, name: &str) -> String {
    let last = raw[span.end - 1];
    let ending: String = last.chars().rev().take_while(|c| ",.;:?!)".contains(*c)).collect();
    let ending: String = ending.chars().rev().collect();
    let name = format!("{name}{ending}");
    let before = raw[..span.start].iter().copied();
    before.chain([&*name]).chain(raw[span.end..].iter().copied()).collect::<Vec<&str>>().join(" ")
}

/// "The one with mailer on it", "the box where web runs": returns where the clause ends, and the only node of the pods that it names.
fn of_clause(plain: &[String], raw: &[&str], noun: usize, conversation: &Conversation) -> Option<(usize, String)> {
    let lexicon = Lexicon::of(conversation);
    let (mut name, mut end) = (None, noun + 1);
    if raw[noun].ends_with([',', '.', ';', '?', '!']) {
        return None;
    }
    for at in noun + 1..plain.len().min(noun + 1 + MAX_CLAUSE) {
        let word = &plain[at];
        if !CONNECTIVES.contains(&&**word) {
            if name.is_some() || at == noun + 1 && plain[noun] == "one" || lexicon.linked(word).is_none() {
                break;
            }
            name = Some(word.clone());
        }
        end = at + 1;
        if raw[at].ends_with([',', '.', ';', '?', '!']) {
            break;
        }
    }
    let name = name?;
    let shown = conversation.earlier.iter().flat_map(refer::shown_objects);
    let pods = shown.chain(conversation.mentioned.iter().flatten()).filter(|object| object.kind == "pods");
    let fits = |object: &&ObjectSummary| {
        !object.node.is_empty() && refer::fit_of(object, &name, &lexicon).is_some_and(|fit| fit < 2)
    };
    let mut nodes: Vec<&String> = pods.filter(fits).map(|object| &object.node).collect();
    nodes.sort();
    nodes.dedup();
    match nodes[..] {
        [only] => Some((end, only.clone())),
        _ => None,
    }
}

/// Returns the node that the conversation is about: one that was named, whose pods were listed, or that of the pod that was spoken of.
fn spoken_of(conversation: &Conversation) -> Option<Spoken> {
    let newest = conversation.earlier.iter().rev().find(|exchange| !refer::subjects(exchange).is_empty())?;
    let topic = |name: &String| Some(Spoken { name: name.clone(), is_topic: true });
    if let Some(node) = newest.steps.iter().find_map(|step| step.command.node.as_ref()) {
        return topic(node);
    }
    let Found::One(object) = refer::focus(conversation, Verb::Describe, None, None) else { return None };
    match &*object.kind {
        "nodes" => topic(&object.name),
        "pods" if !object.node.is_empty() => {
            // The question about the pod or a list since then named the node.
            Some(Spoken { name: object.node.clone(), is_topic: asks_for_node(newest, conversation) })
        }
        _ => None,
    }
}

/// "Which box is it on?", "and its node?"
fn asks_for_node(exchange: &Exchange, conversation: &Conversation) -> bool {
    let said = read(&exchange.said, &Lexicon::of(conversation));
    said.has_any(&NOUNS) || said.has("where") && said.namespace.is_none()
}

impl Planner<'_> {
    /// "What else runs on node a?", "on which nodes do the web pods run?", "are both on the same node?" `None` for other messages.
    pub(super) fn about_nodes(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_read = matches!(reading.verb, None | Some(Verb::Get | Verb::Describe | Verb::Find));
        if !is_read || reading.manifest.is_some() {
            return None;
        }
        self.same_node().or_else(|| self.nodes_of_pods()).or_else(|| self.pods_of_node())
    }

    /// Returns the node after "on" in a message.
    fn node_named(&self) -> Option<String> {
        let words = &self.reading.words;
        let conversation = self.conversation;
        let shown = || conversation.earlier.iter().flat_map(refer::shown_objects);
        let is_node = |word: &String| {
            let mentioned = conversation.mentioned.iter().flatten();
            let mut all = shown().chain(mentioned);
            all.any(|object| object.kind == "nodes" && object.name == *word || object.node == *word)
        };
        let at = (1..words.len()).find(|at| is_node(&words[*at]))?;
        let before = if NOUNS.contains(&&*words[at - 1]) { at.checked_sub(2)? } else { at - 1 };
        (words[before] == "on" || words[before] == "of" && self.reading.has("pods")).then(|| words[at].clone())
    }

    /// "What else runs on node a?", "who's on node a": the pods of the node, with those of the list that is spoken of if it asks for one of
    /// them.
    fn pods_of_node(&self) -> Option<Next> {
        let reading = &self.reading;
        let node = self.node_named()?;
        let is_known = |word: &&String| **word != node && !NOUNS.contains(&&***word);
        let asks = reading.has_any(&[
            "another",
            "other",
            "others",
            "what",
            "whats",
            "which",
            "who",
            "whos",
            "anything",
            "something",
            "else",
            "pods",
            "list",
            "show",
            "any",
            "everything",
            "stuff",
        ]) || reading.says("how many");
        // "And on node b?", after a question about the pod on another one.
        let words: Vec<&String> = reading.words.iter().filter(is_known).collect();
        let continues =
            words.iter().all(|word| matches!(&***word, "and" | "on" | "what" | "about" | "how" | "then" | "so"));
        let is_about_node = reading.has_any(&[
            "version",
            "kubelet",
            "taint",
            "taints",
            "cpu",
            "memory",
            "condition",
            "conditions",
            "image",
            "wrong",
            "events",
            "why",
            "log",
            "logs",
            "happened",
            "happening",
            "limit",
            "since",
            "when",
            "age",
            "old",
        ]);
        let refers = reading.pick.is_some() || reading.pronoun && !reading.each && !reading.has("it");
        if !asks && !continues || is_about_node || refers {
            return None;
        }
        let names: Vec<&String> = reading.names.iter().filter(|name| **name != node).collect();
        if names.len() > 1 {
            return None;
        }
        let of_list =
            continues || reading.each || ["one", "them", "those", "these"].iter().any(|word| reading.has(word));
        let list = refer::last_lists(self.conversation).into_iter().find(|list| list.kind.as_deref() == Some("pods"));
        let list = list.filter(|_| of_list && reading.namespace.is_none());
        let namespace = reading.namespace.clone().or_else(|| list.as_ref()?.namespace.clone());
        let like = names.first().map(|name| (*name).clone()).or_else(|| list?.like);
        let all_namespaces = namespace.is_none();
        let command = Command {
            kind: Some("pods".to_owned()),
            node: Some(node),
            unhealthy: reading.unhealthy,
            namespace,
            like,
            all_namespaces,
            ..Command::new(Verb::Get)
        };
        Some(self.run_or_answer(vec![command]))
    }

    /// "On which nodes do the pods in apps run?", "it's on what node?": the pods, which show their nodes.
    fn nodes_of_pods(&self) -> Option<Next> {
        let reading = &self.reading;
        let names_node = reading.has("nodes") || reading.has_any(&NOUNS);
        let asks = names_node && reading.has_any(&["what", "which", "whats"]) && reading.pick.is_none();
        let is_located = reading.has_any(&["on", "run", "runs", "running", "where", "scheduled", "sit", "live"]);
        if !asks || !is_located || self.node_named().is_some() || reading.each {
            return None;
        }
        let names: Vec<&String> =
            reading.names.iter().filter(|name| !self.conversation.namespaces.contains(name)).collect();
        // "On which nodes do the cart pods run?", whose names took their place.
        let known: Vec<ObjectSummary> = names
            .iter()
            .filter_map(|name| match refer::known(self.conversation, name, Verb::Describe, &self.of_pods()) {
                Found::One(pod) if pod.kind == "pods" && pod.name == **name => Some(pod),
                _ => None,
            })
            .collect();
        if names.len() > 1 && known.len() == names.len() && known.len() <= MAX_COMPARED {
            return Some(self.run_or_answer(known.iter().map(|pod| self.command(Verb::Get, pod)).collect()));
        }
        if reading.has("pods") && names.len() <= 1 {
            let place = reading.namespace.clone().or_else(|| refer::last_namespace(self.conversation));
            // Found by one pod, the workload is meant.
            let like = names.first().map(|name| (*name).clone());
            let command = Command {
                kind: Some("pods".to_owned()),
                all_namespaces: place.is_none(),
                namespace: place,
                like,
                ..Command::new(Verb::Get)
            };
            return Some(self.run_or_answer(vec![command]));
        }
        let points = reading.pronoun || reading.has_any(&["its", "it"]) || reading.words.len() <= MAX_WORDS_OF_POINTING;
        if reading.kind.as_deref() != Some("nodes") || !points || !names.is_empty() || reading.state.is_some() {
            return None;
        }
        match refer::focus(self.conversation, Verb::Describe, Some("pods"), None) {
            Found::One(pod) => Some(self.run_or_answer(vec![self.command(Verb::Get, &pod)])),
            _ => None,
        }
    }

    /// Returns the reading of the message as one about pods.
    fn of_pods(&self) -> Reading {
        Reading { kind: Some("pods".to_owned()), ..self.reading.clone() }
    }

    /// "Are both on the same node?"
    fn same_node(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_meant = reading.asks()
            && reading.has("same")
            && reading.has_any(&NOUNS)
            && reading.has_any(&["both", "they", "these", "those", "two", "all", "them"]);
        if !is_meant || !reading.names.is_empty() {
            return None;
        }
        let pods = match refer::focus(self.conversation, Verb::Describe, Some("pods"), None) {
            Found::Several(pods) => pods,
            Found::One(pod) => refer::pair_with(self.conversation, &pod, Verb::Describe),
            Found::None => return None,
        };
        if !(2..=MAX_COMPARED).contains(&pods.len()) {
            return None;
        }
        let commands: Vec<Command> = pods.iter().map(|pod| self.command(Verb::Get, pod)).collect();
        let is_done = |step: &&Step| step.command.verb == Verb::Get && step.command.name.is_some();
        let done: Vec<&Step> = self.conversation.steps.iter().filter(is_done).collect();
        if done.is_empty() {
            return Some(Next::Run(commands));
        }
        let outcomes = done.iter().filter_map(|step| step.outcome.as_ref());
        let nodes: Vec<String> =
            outcomes.flat_map(|outcome| &outcome.objects).map(|object| object.node.clone()).collect();
        let verdict = match nodes.iter().all(|node| node == &nodes[0]) {
            true => format!("Yes, they are on the same node: {}.", nodes.first().cloned().unwrap_or_default()),
            false => format!("No, they are on different nodes: {}.", nodes.join(", ")),
        };
        Some(reply(format!("{verdict}\n{}", answers::of_steps(&done))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Outcome;

    fn pod(name: &str, node: &str) -> ObjectSummary {
        ObjectSummary {
            kind: "pods".to_owned(),
            name: name.to_owned(),
            namespace: "shop".to_owned(),
            node: node.to_owned(),
            ..ObjectSummary::default()
        }
    }

    fn after(said: &str, command: Command, objects: Vec<ObjectSummary>) -> Conversation {
        let outcome = Outcome { command: command.clone(), text: String::new(), objects };
        let step = Step { command, outcome: Some(outcome), error: None };
        Conversation {
            earlier: vec![Exchange { said: said.to_owned(), steps: vec![step], ..Exchange::default() }],
            namespaces: vec!["shop".to_owned()],
            mentioned: Some(Vec::new()),
            ..Conversation::default()
        }
    }

    #[test]
    fn a_node_is_named_where_the_conversation_says_which_one_it_is() {
        let get = Command::new(Verb::Get).on("pods", "cart-1", Some("shop"));
        let asked = after("which box is cart-1 on", get.clone(), vec![pod("cart-1", "n1")]);
        let named = |message: &str| with_node(message, &asked);
        assert_eq!(named("what else runs there?").as_deref(), Some("what else runs on node n1?"));
        assert_eq!(named("cordon that machine please").as_deref(), Some("cordon node n1 please"));
        assert_eq!(named("anything else on it").as_deref(), Some("anything else on node n1"));
        assert_eq!(named("is it there?"), None);
        assert_eq!(named("are there others"), None);
        // The pod was spoken of, and not where it runs.
        let described = after("describe cart-1", get, vec![pod("cart-1", "n1")]);
        assert_eq!(with_node("what else runs there?", &described), None);
        let list = Command { kind: Some("pods".to_owned()), ..Command::new(Verb::Get) };
        let listed = after("pods in shop", list, vec![pod("cart-1", "n1"), pod("web-1", "n2")]);
        let of_pod = with_node("cordon the one with web-1 on it", &listed);
        assert_eq!(of_pod.as_deref(), Some("cordon node n2"));
    }
}
