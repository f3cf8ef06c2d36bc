use threadkeep_core::exchange::ImportedMessage;
use threadkeep_core::{Content, Role};

use super::*;

/// Builds a tree of messages with these parents. `current` is the message that the source marks as current.
fn tree(parents: &[Option<usize>], current: Option<usize>) -> MessageTree {
    tree_with_times(parents, &vec![None; parents.len()], current)
}

fn tree_with_times(
    parents: &[Option<usize>],
    created_at_seconds: &[Option<i64>],
    current: Option<usize>,
) -> MessageTree {
    let node = |(index, parent): (usize, &Option<usize>)| ImportedNode {
        parent: *parent,
        message: ImportedMessage {
            id: None,
            external_id: Some(index.to_string()),
            created_at: created_at_seconds[index].map(|seconds| Timestamp::from_micros(seconds * 1_000_000).unwrap()),
            content: Content::text(Role::User, "x"),
        },
    };
    let nodes: Vec<_> = parents.iter().enumerate().map(node).collect();
    MessageTree::new(MessageTree::parts(&nodes), &vec![1; nodes.len()], current)
}

/// The contents of a thread that consists of `nodes`. `first_own` is `None` for the main thread.
fn thread_contents(first_own: Option<usize>, nodes: &[usize]) -> ThreadContents {
    let positions = nodes.iter().copied().zip(1..).collect();
    ThreadContents { first_own, positions, end: nodes.last().map_or(End::Empty, |last| End::Message(*last)) }
}

fn new_threads(plan: &Plan) -> Vec<(bool, Vec<usize>)> {
    plan.new.iter().map(|new| (new.is_main, new.own_messages.clone())).collect()
}

/// Two branches: 0, 1, 2 and 0, 1, 3, 4.
const FORKED: [Option<usize>; 5] = [None, Some(0), Some(1), Some(1), Some(3)];

#[test]
fn the_current_branch_becomes_the_main_thread_and_others_become_forks() {
    for (current, main, fork) in [(Some(2), vec![0, 1, 2], vec![3, 4]), (Some(3), vec![0, 1, 3, 4], vec![2])] {
        assert_eq!(new_threads(&plan(&tree(&FORKED, current), &[])), [(true, main), (false, fork)]);
    }
}

#[test]
fn if_current_is_an_inner_node_the_branch_with_the_newest_message_below_it_is_chosen() {
    let current_leaf = |seconds: [Option<i64>; 5]| tree_with_times(&FORKED, &seconds, Some(0)).current_leaf;
    assert_eq!(current_leaf([Some(0), Some(1), Some(9), Some(2), Some(3)]), Some(2));
    assert_eq!(
        current_leaf([Some(0), Some(1), Some(3), Some(2), Some(9)]),
        Some(4),
        "the newest message is below the other sibling"
    );
    assert_eq!(current_leaf([Some(0), Some(1), Some(9), None, None]), Some(2), "a message without a time is not newer");
    assert_eq!(current_leaf([None; 5]), Some(4), "without times, the last child is chosen at each level");
}

#[test]
fn threads_are_continued_only_at_their_end() {
    let tree = tree(&FORKED, Some(2));
    let plan_if_continued = plan(&tree, &[thread_contents(None, &[0, 1, 3])]);
    assert_eq!((new_threads(&plan_if_continued), plan_if_continued.to_append), (vec![(false, vec![2])], vec![vec![4]]));
    let plan_if_foreign_end = plan(&tree, &[ThreadContents { end: End::Other, ..thread_contents(None, &[0, 1, 3]) }]);
    assert_eq!(
        (new_threads(&plan_if_foreign_end), plan_if_foreign_end.to_append),
        (vec![(false, vec![2]), (false, vec![4])], vec![vec![]])
    );
}

#[test]
fn threads_that_mix_branches_are_ignored_and_their_messages_imported_again() {
    let plan = plan(&tree(&FORKED, Some(2)), &[thread_contents(None, &[0, 1, 3, 4, 2])]);
    assert_eq!(new_threads(&plan), [(false, vec![0, 1, 2]), (false, vec![3, 4])]);
    assert_eq!((plan.is_mixed, plan.to_append), (vec![true], vec![vec![]]));
}

#[test]
fn interrupted_forks_are_completed() {
    let plan = plan(&tree(&FORKED, Some(2)), &[thread_contents(None, &[0, 1, 2]), thread_contents(Some(3), &[0])]);
    assert_eq!((plan.is_incomplete, plan.to_append), (vec![false, true], vec![vec![], vec![3, 4]]));
    assert!(plan.new.is_empty());
}

#[test]
fn branches_that_exceed_the_limit_are_skipped_and_listed() {
    let mut parents = vec![None];
    parents.extend(vec![Some(0); MAX_BRANCHES + 5]);
    let plan = plan(&tree(&parents, Some(MAX_BRANCHES + 3)), &[]);
    assert_eq!(plan.new.len(), MAX_BRANCHES);
    assert_eq!(plan.new[0].own_messages, [0, MAX_BRANCHES + 3], "the current branch is included");
    assert_eq!(plan.skipped, [MAX_BRANCHES, MAX_BRANCHES + 1, MAX_BRANCHES + 2, MAX_BRANCHES + 4, MAX_BRANCHES + 5]);
}

#[test]
fn branches_that_exceed_the_copy_limit_are_skipped() {
    let mut parents: Vec<Option<usize>> = (0..MAX_COPIED_MESSAGES / 2).map(|node| node.checked_sub(1)).collect();
    let last = parents.len() - 1;
    parents.extend([Some(last); 5]);
    let plan = plan(&tree(&parents, None), &[]);
    assert_eq!((plan.new.len(), plan.skipped.len()), (3, 2));
}
