use threadkeep_core::exchange::ImportedMessage;
use threadkeep_core::{Content, Role};

use super::*;

/// A tree of messages with these parents.
fn shape(parents: &[Option<usize>], current: Option<usize>) -> MessageTree {
    shape_at(parents, &vec![None; parents.len()], current)
}

fn shape_at(parents: &[Option<usize>], seconds: &[Option<i64>], current: Option<usize>) -> MessageTree {
    let node = |(index, parent): (usize, &Option<usize>)| ImportedNode {
        parent: *parent,
        message: ImportedMessage {
            id: None,
            external_id: Some(index.to_string()),
            created_at: seconds[index].map(|seconds| Timestamp::from_micros(seconds * 1_000_000).unwrap()),
            content: Content::text(Role::User, "x"),
        },
    };
    let nodes: Vec<_> = parents.iter().enumerate().map(node).collect();
    MessageTree::new(MessageTree::parts(&nodes), &vec![1; nodes.len()], current)
}

fn contents(first: Option<usize>, nodes: &[usize]) -> ThreadContents {
    let positions = nodes.iter().copied().zip(1..).collect();
    ThreadContents { first, positions, end: nodes.last().map_or(End::Empty, |last| End::Message(*last)) }
}

fn own(plan: &Plan) -> Vec<(bool, Vec<usize>)> {
    plan.new.iter().map(|new| (new.is_main, new.own.clone())).collect()
}

/// Two branches: 0, 1, 2 and 0, 1, 3, 4.
const FORKED: [Option<usize>; 5] = [None, Some(0), Some(1), Some(1), Some(3)];

#[test]
fn the_current_branch_becomes_the_main_thread_and_others_become_forks() {
    for (current, main, fork) in [(Some(2), vec![0, 1, 2], vec![3, 4]), (Some(3), vec![0, 1, 3, 4], vec![2])] {
        assert_eq!(own(&plan(&shape(&FORKED, current), &[])), [(true, main), (false, fork)]);
    }
}

#[test]
fn the_branch_with_the_newest_message_below_an_inner_node_is_current() {
    let current_leaf = |seconds: [Option<i64>; 5]| shape_at(&FORKED, &seconds, Some(0)).current_leaf;
    assert_eq!(current_leaf([Some(0), Some(1), Some(9), Some(2), Some(3)]), Some(2));
    assert_eq!(
        current_leaf([Some(0), Some(1), Some(3), Some(2), Some(9)]),
        Some(4),
        "the newest message is below the other sibling"
    );
    assert_eq!(current_leaf([Some(0), Some(1), Some(9), None, None]), Some(2), "a message without a time is not newer");
    assert_eq!(current_leaf([None; 5]), Some(4), "without times, the last children");
}

#[test]
fn threads_are_continued_only_at_their_end() {
    let shape = shape(&FORKED, Some(2));
    let grown = plan(&shape, &[contents(None, &[0, 1, 3])]);
    assert_eq!((own(&grown), grown.continued), (vec![(false, vec![2])], vec![vec![4]]));
    let ended = plan(&shape, &[ThreadContents { end: End::Other, ..contents(None, &[0, 1, 3]) }]);
    assert_eq!((own(&ended), ended.continued), (vec![(false, vec![2]), (false, vec![4])], vec![vec![]]));
}

#[test]
fn threads_with_mixed_branches_own_no_messages() {
    let plan = plan(&shape(&FORKED, Some(2)), &[contents(None, &[0, 1, 3, 4, 2])]);
    assert_eq!(own(&plan), [(false, vec![0, 1, 2]), (false, vec![3, 4])]);
    assert_eq!((plan.mixed, plan.continued), (vec![true], vec![vec![]]));
}

#[test]
fn interrupted_forks_are_completed() {
    let plan = plan(&shape(&FORKED, Some(2)), &[contents(None, &[0, 1, 2]), contents(Some(3), &[0])]);
    assert_eq!((plan.is_incomplete, plan.continued), (vec![false, true], vec![vec![], vec![3, 4]]));
    assert!(plan.new.is_empty());
}

#[test]
fn branches_over_the_limit_are_skipped_and_listed() {
    let mut parents = vec![None];
    parents.extend(vec![Some(0); MAX_BRANCHES + 5]);
    let plan = plan(&shape(&parents, Some(MAX_BRANCHES + 3)), &[]);
    assert_eq!(plan.new.len(), MAX_BRANCHES);
    assert_eq!(plan.new[0].own, [0, MAX_BRANCHES + 3], "the current branch is included");
    assert_eq!(plan.skipped, [MAX_BRANCHES, MAX_BRANCHES + 1, MAX_BRANCHES + 2, MAX_BRANCHES + 4, MAX_BRANCHES + 5]);
}

#[test]
fn branches_over_the_limit_of_copies_are_skipped() {
    let mut parents: Vec<Option<usize>> = (0..MAX_COPIED_MESSAGES / 2).map(|node| node.checked_sub(1)).collect();
    let last = parents.len() - 1;
    parents.extend([Some(last); 5]);
    let plan = plan(&shape(&parents, None), &[]);
    assert_eq!((plan.new.len(), plan.skipped.len()), (3, 2));
}
