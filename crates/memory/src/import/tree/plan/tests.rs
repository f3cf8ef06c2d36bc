use threadkeep_core::exchange::ImportedMessage;
use threadkeep_core::{Content, Role};

use super::*;

/// A tree of messages that follow these.
fn shape(parents: &[Option<usize>], current: Option<usize>) -> Shape {
    shape_at(parents, &vec![None; parents.len()], current)
}

fn shape_at(parents: &[Option<usize>], seconds: &[Option<i64>], current: Option<usize>) -> Shape {
    let node = |(place, parent): (usize, &Option<usize>)| ImportedNode {
        parent: *parent,
        message: ImportedMessage {
            id: None,
            external_id: Some(place.to_string()),
            created_at: seconds[place].map(|seconds| Timestamp::from_micros(seconds * 1_000_000).unwrap()),
            content: Content::text(Role::User, "x"),
        },
    };
    let nodes: Vec<_> = parents.iter().enumerate().map(node).collect();
    Shape::of(Shape::prepare(&nodes), &vec![1; nodes.len()], current)
}

fn held(first: Option<usize>, nodes: &[usize]) -> Held {
    let positions = nodes.iter().copied().zip(1..).collect();
    Held { first, positions, end: nodes.last().map_or(End::Empty, |last| End::Message(*last)) }
}

fn own(plan: &Plan) -> Vec<(bool, Vec<usize>)> {
    plan.new.iter().map(|new| (new.is_main, new.own.clone())).collect()
}

/// 0 and 1, then 2 or 3 and 4.
const FORKED: [Option<usize>; 5] = [None, Some(0), Some(1), Some(1), Some(3)];

#[test]
fn the_branch_that_is_shown_is_the_thread_and_others_are_forks() {
    for (current, main, fork) in [(Some(2), vec![0, 1, 2], vec![3, 4]), (Some(3), vec![0, 1, 3, 4], vec![2])] {
        assert_eq!(own(&plan(&shape(&FORKED, current), &[])), [(true, main), (false, fork)]);
    }
}

#[test]
fn from_a_message_inside_the_tree_the_branch_with_the_newest_message_is_shown() {
    let shown = |seconds: [Option<i64>; 5]| shape_at(&FORKED, &seconds, Some(0)).shown;
    assert_eq!(shown([Some(0), Some(1), Some(9), Some(2), Some(3)]), Some(2));
    assert_eq!(
        shown([Some(0), Some(1), Some(3), Some(2), Some(9)]),
        Some(4),
        "the newest stands below the other sibling"
    );
    assert_eq!(shown([Some(0), Some(1), Some(9), None, None]), Some(2), "a message without a time is not newer");
    assert_eq!(shown([None; 5]), Some(4), "without times, the last children");
}

#[test]
fn a_thread_is_continued_at_its_end_and_nowhere_else() {
    let shape = shape(&FORKED, Some(2));
    let grown = plan(&shape, &[held(None, &[0, 1, 3])]);
    assert_eq!((own(&grown), grown.continued), (vec![(false, vec![2])], vec![vec![4]]));
    let ended = plan(&shape, &[Held { end: End::Other, ..held(None, &[0, 1, 3]) }]);
    assert_eq!((own(&ended), ended.continued), (vec![(false, vec![2]), (false, vec![4])], vec![vec![]]));
}

#[test]
fn a_thread_of_mixed_branches_stands_for_none() {
    let plan = plan(&shape(&FORKED, Some(2)), &[held(None, &[0, 1, 3, 4, 2])]);
    assert_eq!(own(&plan), [(false, vec![0, 1, 2]), (false, vec![3, 4])]);
    assert_eq!((plan.mixed, plan.continued), (vec![true], vec![vec![]]));
}

#[test]
fn a_fork_that_was_cut_off_is_completed() {
    let plan = plan(&shape(&FORKED, Some(2)), &[held(None, &[0, 1, 2]), held(Some(3), &[0])]);
    assert_eq!((plan.begun, plan.continued), (vec![false, true], vec![vec![], vec![3, 4]]));
    assert!(plan.new.is_empty());
}

#[test]
fn branches_beyond_the_bound_are_named() {
    let mut parents = vec![None];
    parents.extend(vec![Some(0); BRANCHES + 5]);
    let plan = plan(&shape(&parents, Some(BRANCHES + 3)), &[]);
    assert_eq!(plan.new.len(), BRANCHES);
    assert_eq!(plan.new[0].own, [0, BRANCHES + 3], "the branch that is shown is there");
    assert_eq!(plan.left_out, [BRANCHES, BRANCHES + 1, BRANCHES + 2, BRANCHES + 4, BRANCHES + 5]);
}

#[test]
fn copies_have_a_bound_too() {
    let mut parents: Vec<Option<usize>> = (0..COPIED_MESSAGES / 2).map(|node| node.checked_sub(1)).collect();
    let last = parents.len() - 1;
    parents.extend([Some(last); 5]);
    let plan = plan(&shape(&parents, None), &[]);
    assert_eq!((plan.new.len(), plan.left_out.len()), (3, 2));
}
