//! Groups of messages that are included or omitted together: tool calls and their results.

use std::collections::BTreeMap;

use threadkeep_core::{Message, Part};

/// Messages that are included together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The indices of the messages in the history, ascending.
    pub(crate) members: Vec<usize>,
    /// Whether the unit contains a result whose call is missing. Models reject such a result.
    pub(crate) is_orphan: bool,
}

impl Unit {
    pub(crate) fn oldest(&self) -> usize {
        self.members[0]
    }

    pub(crate) fn newest(&self) -> usize {
        self.members[self.members.len() - 1]
    }
}

/// Groups a history into units, ordered by their newest message.
pub(crate) fn units(history: &[Message]) -> Vec<Unit> {
    // The parents of a union-find forest: each message points to an earlier one in its unit, or to itself.
    let mut parents: Vec<usize> = (0..history.len()).collect();
    let mut orphans = Vec::new();
    let mut calls: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, message) in history.iter().enumerate() {
        for part in &message.content.parts {
            match part {
                // Some models reuse call ids in every turn: a result belongs to the latest call with its id.
                Part::ToolCall(call) => {
                    calls.insert(&call.id, index);
                }
                Part::ToolResult(result) => match calls.get(result.call_id.as_str()) {
                    Some(&call) => join(&mut parents, call, index),
                    None => orphans.push(index),
                },
                _ => {}
            }
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); history.len()];
    for index in 0..history.len() {
        members[root(&parents, index)].push(index);
    }
    let orphans: Vec<usize> = orphans.into_iter().map(|index| root(&parents, index)).collect();
    let members = members.into_iter().enumerate().filter(|(_, members)| !members.is_empty());
    let mut units: Vec<Unit> =
        members.map(|(first, members)| Unit { members, is_orphan: orphans.contains(&first) }).collect();
    units.sort_by_key(Unit::newest);
    units
}

fn root(parents: &[usize], mut index: usize) -> usize {
    while parents[index] != index {
        index = parents[index];
    }
    index
}

fn join(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    parents[one.max(other)] = one.min(other);
}

#[cfg(test)]
mod tests {
    use threadkeep_core::{Content, JsonText, MessageId, Role, Timestamp, ToolCall, ToolResult};

    use super::*;

    fn history(parts: Vec<Vec<Part>>) -> Vec<Message> {
        let message = |(seq, parts)| Message {
            seq,
            id: MessageId::from_name(&[0]),
            external_id: None,
            revision: 0,
            created_at: Timestamp::MIN,
            content: Content { parts, ..Content::empty(Role::Assistant) },
        };
        (1..).zip(parts).map(message).collect()
    }

    fn call(id: &str) -> Part {
        Part::ToolCall(ToolCall { id: id.into(), name: "look".into(), arguments: JsonText::new("{}").unwrap() })
    }

    fn result(id: &str) -> Part {
        Part::ToolResult(ToolResult { call_id: id.into(), output: "seen".into(), is_error: false })
    }

    #[test]
    fn calls_and_results_are_grouped_across_other_messages() {
        let history = history(vec![vec![call("a"), call("b")], vec![], vec![result("a")], vec![], vec![result("b")]]);
        let units = units(&history);
        let members: Vec<_> = units.iter().map(|unit| unit.members.clone()).collect();
        assert_eq!(members, [vec![1], vec![3], vec![0, 2, 4]]);
        assert!(units.iter().all(|unit| !unit.is_orphan));
    }

    #[test]
    fn a_reused_id_refers_to_the_latest_call() {
        let history = history(vec![vec![call("1")], vec![result("1")], vec![call("1")], vec![result("1")]]);
        let members: Vec<_> = units(&history).into_iter().map(|unit| unit.members).collect();
        assert_eq!(members, [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn a_result_without_its_call_is_an_orphan() {
        let units = units(&history(vec![vec![result("gone")], vec![call("a")], vec![result("a"), result("gone")]]));
        assert_eq!(units.iter().map(|unit| unit.is_orphan).collect::<Vec<_>>(), [true, true]);
    }
}
