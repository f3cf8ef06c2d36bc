//! Finds the objects that a message may name.

use std::time::Duration;

use futures::future::join_all;

use super::text::summarise;
use super::{Cluster, ObjectSummary};
use crate::command::{Command, Verb};
use crate::kinds::Kind;

/// How long to wait for the lists.
const WAIT: Duration = Duration::from_secs(5);
/// The maximum number of objects of one kind that are returned.
const MAX_PER_KIND: usize = 30;

impl Cluster {
    /// Returns the objects of these kinds whose names match, in all namespaces; best matches first within each kind. `match_rank` returns
    /// the rank of a match, which is lowest for the best one. Returns `None` if nothing could be read.
    pub(crate) async fn find_mentioned(
        &self,
        kinds: &[&str],
        match_rank: &(dyn Fn(&ObjectSummary) -> Option<u8> + Sync),
    ) -> Option<Vec<ObjectSummary>> {
        let kinds: Vec<Kind> = kinds.iter().filter_map(|kind| Kind::find(kind)).collect();
        let command = Command { all_namespaces: true, ..Command::new(Verb::Find) };
        let lists = kinds.iter().map(|kind| tokio::time::timeout(WAIT, self.items(kind, &command)));
        let (mut found, mut any_read) = (Vec::new(), false);
        for (kind, list) in kinds.iter().zip(join_all(lists).await) {
            let Ok(Ok(items)) = list else { continue };
            any_read = true;
            let objects = items.iter().map(|item| summarise(kind, item));
            let mut matching: Vec<(u8, ObjectSummary)> =
                objects.filter_map(|object| match_rank(&object).map(|rank| (rank, object))).collect();
            matching.sort_by_key(|(rank, _)| *rank);
            found.extend(matching.into_iter().take(MAX_PER_KIND).map(|(_, object)| object));
        }
        any_read.then_some(found)
    }
}
