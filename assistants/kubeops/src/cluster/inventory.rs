//! Finds the objects that a message may name.

use std::time::Duration;

use futures::future::join_all;

use super::text::shown;
use super::{Cluster, Shown};
use crate::command::{Command, Verb};
use crate::kinds::Kind;

/// How long to wait for the lists.
const WAIT: Duration = Duration::from_secs(5);
/// The maximum number of objects of one kind that are returned.
const MAX_OF_KIND: usize = 30;

impl Cluster {
    /// Returns the objects of these kinds in all namespaces whose names fit, best fits first within each kind; `None` if nothing could be
    /// read.
    pub(crate) async fn mentioned(
        &self,
        kinds: &[&str],
        fits: &(dyn Fn(&Shown) -> Option<u8> + Sync),
    ) -> Option<Vec<Shown>> {
        let kinds: Vec<Kind> = kinds.iter().filter_map(|kind| Kind::find(kind)).collect();
        let command = Command { all_namespaces: true, ..Command::new(Verb::Find) };
        let lists = kinds.iter().map(|kind| tokio::time::timeout(WAIT, self.items(kind, &command)));
        let (mut found, mut is_read) = (Vec::new(), false);
        for (kind, list) in kinds.iter().zip(join_all(lists).await) {
            let Ok(Ok(items)) = list else { continue };
            is_read = true;
            let objects = items.iter().map(|item| shown(kind, item));
            let mut fitting: Vec<(u8, Shown)> =
                objects.filter_map(|object| fits(&object).map(|fit| (fit, object))).collect();
            fitting.sort_by_key(|(fit, _)| *fit);
            found.extend(fitting.into_iter().take(MAX_OF_KIND).map(|(_, object)| object));
        }
        is_read.then_some(found)
    }
}
