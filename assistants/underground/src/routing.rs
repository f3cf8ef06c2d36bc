//! Chooses the agent that answers: one for each line, and one for the whole network.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use threadkeep::core::Message;
use threadkeep::dialogue::Utterance;

use crate::lines::{COLLABORATIVE_AGENT, LineInfo, STATUS_AGENT, find_line, line_runs};
use crate::network::LONDON;
use crate::offline::SPEECH;

/// Maximum number of agents that answer one message together.
pub const MAX_AGENTS: usize = 3;

/// The choice of agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutedAgents {
    /// The agents, at least one.
    pub agents: Vec<String>,
    /// The confidence in the choice, from 0 to 1.
    pub confidence: f64,
}

impl RoutedAgents {
    fn one(agent: &str, confidence: f64) -> Self {
        Self { agents: vec![agent.to_owned()], confidence }
    }

    /// Returns the agent name that is stored with the answer.
    #[must_use]
    pub fn stored(&self) -> &str {
        match self.agents.as_slice() {
            [one] => one,
            _ => COLLABORATIVE_AGENT,
        }
    }
}

/// The lines that the conversation mentions, from which the agents for a message are chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RoutingContext {
    /// The id of the line that was mentioned last.
    pub line: Option<String>,
    /// The id of the user's usual line, if the message refers to it.
    pub usual_line: Option<String>,
    /// The ids of the lines to which the message refers by what was said about them, such as "the first line I asked about".
    #[serde(default)]
    pub referred: Vec<String>,
}

/// Words that indicate a question about the whole network.
const NETWORK_WORDS: [&str; 12] = [
    "tube",
    "underground",
    "network",
    "tfl",
    "lines",
    "everything",
    "anywhere",
    "overground",
    "trains",
    "london",
    "service",
    "services",
];
/// Words that indicate a question about the service.
const STATUS_WORDS: [&str; 20] = [
    "delay",
    "delays",
    "delayed",
    "status",
    "disruption",
    "disruptions",
    "disrupted",
    "running",
    "closed",
    "closure",
    "closures",
    "suspended",
    "problem",
    "problems",
    "issues",
    "ok",
    "fine",
    "good",
    "down",
    "late",
];
/// Words that refer to something mentioned earlier.
const REFERRING_WORDS: [&str; 16] = [
    "there", "it", "that", "this", "them", "they", "one", "again", "back", "still", "then", "instead", "same", "next",
    "those", "and",
];

/// Words by which a question such as "what is closed there" refers to the line mentioned earlier.
const REFERRING_LINE: [&str; 6] = ["it", "there", "that", "line", "part", "section"];

/// Chooses the agents for a message. In order of precedence: the lines that it names, the user's usual line, a station that
/// only one line serves, the whole network, the line that the conversation mentioned last, words about the service.
#[must_use]
pub fn route(message: &str, routing_context: &RoutingContext) -> RoutedAgents {
    const NAMED: f64 = 0.95;
    const USUAL: f64 = 0.9;
    const STATION: f64 = 0.9;
    const NETWORK: f64 = 0.9;
    const CONVERSATION: f64 = 0.7;
    const STATUS: f64 = 0.6;
    const DEFAULT: f64 = 0.5;
    let utterance = Utterance::new(message).corrected(|message, at| SPEECH.correct(message, at));
    let mut named = lines_of(&utterance);
    if named.is_empty() {
        named.extend(routing_context.referred.iter().filter_map(|line| find_line(line)));
    }
    match named.as_slice() {
        [] => {}
        [one] => return RoutedAgents::one(one.agent, NAMED),
        several => {
            let agents = several.iter().take(MAX_AGENTS).map(|line| line.agent.to_owned()).collect();
            return RoutedAgents { agents, confidence: NAMED };
        }
    }
    if let Some(line) = routing_context.usual_line.as_deref().and_then(find_line) {
        return RoutedAgents::one(line.agent, USUAL);
    }
    let stations = stations_of(&utterance);
    let common = common_lines(&stations);
    if let [only] = common.as_slice() {
        return RoutedAgents::one(only.agent, STATION);
    }
    let has = |words: &[&str]| utterance.words().iter().any(|word| words.contains(&word.folded.as_str()));
    let refers = has(&REFERRING_WORDS) || utterance.words().len() <= 3;
    let is_of_line = routing_context.line.as_deref().and_then(find_line);
    let is_on_all = utterance.words().windows(2).any(|words| {
        matches!(words[0].folded.as_str(), "all" | "whole" | "entire")
            && NETWORK_WORDS.contains(&words[1].folded.as_str())
    }) || has(&["rest", "others", "overview", "summary", "elsewhere"])
        || has(&["other", "else"]) && has(&["lines", "anything"]);
    let asks_what =
        utterance.word(0).starts_with("what") && has(&["closed", "closures", "down", "suspended", "disrupted"]);
    if stations.is_empty() && (is_on_all || asks_what && !has(&REFERRING_LINE)) {
        return RoutedAgents::one(STATUS_AGENT, NETWORK);
    }
    if stations.is_empty() && has(&NETWORK_WORDS) && (has(&STATUS_WORDS) || !refers) && !has(&["there", "it"]) {
        return RoutedAgents::one(STATUS_AGENT, NETWORK);
    }
    // If the message names a station, the line mentioned earlier counts only if it stops there.
    let fits = |line: &&LineInfo| stations.is_empty() || common.iter().any(|known| known.id == line.id);
    if let Some(line) = is_of_line.filter(fits)
        && (refers || has(&STATUS_WORDS) || !stations.is_empty())
    {
        return RoutedAgents::one(line.agent, CONVERSATION);
    }
    RoutedAgents::one(STATUS_AGENT, if has(&STATUS_WORDS) { STATUS } else { DEFAULT })
}

/// Chooses the agent of the only line about which tools were called, if the message itself named neither a line nor the network.
pub(crate) fn by_calls(chosen: RoutedAgents, called: &[Value]) -> RoutedAgents {
    const FROM_MESSAGE: f64 = 0.9;
    const CALLED: f64 = 0.8;
    if chosen.confidence >= FROM_MESSAGE {
        return chosen;
    }
    let names = called.iter().flat_map(|arguments| ["line", "lines"].map(|key| arguments[key].as_str()));
    let mut lines: Vec<Option<&LineInfo>> = names.flatten().filter(|name| !name.is_empty()).map(find_line).collect();
    lines.dedup();
    match lines[..] {
        [Some(line)] => RoutedAgents::one(line.agent, CALLED),
        _ => chosen,
    }
}

/// Returns the lines that a message names, in order.
pub(crate) fn lines_of(utterance: &Utterance) -> Vec<&'static LineInfo> {
    let mut lines: Vec<&'static LineInfo> = Vec::new();
    for line in line_runs(utterance).iter().flat_map(|run| &run.lines).filter_map(|line| find_line(line)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the names of the stations that a message names, each with the ids of its lines.
pub(crate) fn stations_of(utterance: &Utterance) -> Vec<(String, Vec<String>)> {
    let mut stations: Vec<(String, Vec<String>)> = Vec::new();
    for mention in SPEECH.find_stations(utterance) {
        let Some(choice) = mention.choices.first() else { continue };
        let Some(name) = choice.value.as_str() else { continue };
        if let Some(place) = LONDON.places(name).first() {
            let view = LONDON.view_of(place);
            if !stations.iter().any(|(known, _)| *known == view.name) {
                stations.push((view.name, view.lines));
            }
        }
    }
    stations
}

/// Returns the lines that serve all of the stations; none if there are no stations.
fn common_lines(stations: &[(String, Vec<String>)]) -> Vec<&'static LineInfo> {
    let Some(((_, first), rest)) = stations.split_first() else { return Vec::new() };
    let all = first.iter().filter(|line| rest.iter().all(|(_, lines)| lines.contains(line)));
    all.filter_map(|line| find_line(line)).collect()
}

/// Returns the id of the line that a conversation mentioned last: named in a message of the user, or the line of the agent that
/// answered.
#[must_use]
pub fn last_mentioned_line(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| {
        let text = message.plain_text();
        let named = match message.content.role {
            threadkeep::Role::User => lines_of(&Utterance::new(text.as_ref())).last().map(|line| line.id.to_owned()),
            _ => None,
        };
        let agent = || message.content.agent.as_deref().and_then(find_line).map(|line| line.id.to_owned());
        named.or_else(agent)
    })
}

/// Whether a message refers to the user's usual line.
#[must_use]
pub fn refers_to_usual_line(message: &str) -> bool {
    let utterance = Utterance::new(message);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    words.windows(2).any(|pair| pair == ["my", "line"])
        || words.ends_with(&["my", "favourite"])
        || words.ends_with(&["my", "favorite"])
        || words.windows(3).any(|three| {
            three[0] == "my"
                && matches!(three[1], "usual" | "regular" | "normal" | "favourite" | "favorite" | "home" | "own")
                && matches!(three[2], "line" | "tube" | "train")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::LINES;

    fn agent(message: &str, line: Option<&str>) -> String {
        let routing_context = RoutingContext { line: line.map(str::to_owned), ..RoutingContext::default() };
        let routed = route(message, &routing_context);
        assert!((0.0..=1.0).contains(&routed.confidence));
        routed.stored().to_owned()
    }

    // S0.53
    #[test]
    fn follow_ups_stay_with_every_line() {
        for line in &LINES {
            assert_eq!(agent(&format!("What is {} status?", line.name), None), line.agent);
            assert_eq!(agent("Any delays there?", Some(line.id)), line.agent);
        }
        assert_eq!(agent("Any delays there?", None), "STATUS");
    }

    // S0.34, S0.53
    #[test]
    fn agents_are_chosen_in_order() {
        for (message, line, expected) in [
            ("any delays on the Tube?", Some("circle"), "STATUS"),
            ("is the tube running ok", Some("victoria"), "STATUS"),
            ("next train at Oxford Circus", None, "STATUS"),
            ("when is the next train from Brixton", None, "VICTORIA"),
            ("trains at Stanmore", Some("circle"), "JUBILEE"),
            ("from Brixton to Walthamstow Central", None, "VICTORIA"),
            ("Is it delayed?", Some("elizabeth"), "ELIZABETH"),
            ("and northbound?", Some("victoria"), "VICTORIA"),
            ("how do I get to Oxford Circus", Some("circle"), "STATUS"),
            ("is the Central ok and the Jubilee?", None, "COLLABORATIVE"),
            ("let's circle back", None, "STATUS"),
            ("What's the weather in Paris", None, "STATUS"),
            ("and on to Richmond?", Some("district"), "DISTRICT"),
        ] {
            assert_eq!(agent(message, line), expected, "{message}");
        }
    }

    #[test]
    fn calls_decide_where_the_message_does_not() {
        let chosen = |confidence| RoutedAgents::one("STATUS", confidence);
        let called = |lines: &[&str]| lines.iter().map(|line| serde_json::json!({"line": line})).collect::<Vec<_>>();
        assert_eq!(by_calls(chosen(0.5), &called(&["jubilee"])).stored(), "JUBILEE");
        assert_eq!(by_calls(chosen(0.5), &called(&["jubilee", "jubilee"])).stored(), "JUBILEE");
        assert_eq!(by_calls(chosen(0.95), &called(&["jubilee"])).stored(), "STATUS");
        assert_eq!(by_calls(chosen(0.5), &called(&["jubilee", "dlr"])).stored(), "STATUS");
        assert_eq!(by_calls(chosen(0.5), &called(&["all"])).stored(), "STATUS");
        assert_eq!(by_calls(chosen(0.5), &[]).stored(), "STATUS");
    }

    #[test]
    fn the_usual_line_is_recognised() {
        assert!(refers_to_usual_line("Is my usual line OK?"));
        assert!(refers_to_usual_line("how is my line today"));
        assert!(!refers_to_usual_line("Is the Bakerloo line OK?"));
    }
}
