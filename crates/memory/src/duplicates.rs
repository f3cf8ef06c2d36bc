//! Removing duplicate results from forks.
//!
//! A fork starts with copies of another thread's messages, which have the same ids. A search over several threads returns each
//! of these messages once.

use std::collections::{HashMap, HashSet};

use threadkeep_core::{Content, Message, MessageId, Owner, Scope, ThreadId};

use crate::{Memory, Result};

impl Memory {
    /// Removes copies. Of the messages with the same id, content and owner, keeps the one in the thread `preferred`, or else the
    /// first.
    pub(crate) async fn remove_duplicates<T>(
        &self,
        scope: &Scope,
        found: Vec<T>,
        preferred: Option<ThreadId>,
        message: impl Fn(&T) -> (ThreadId, &Message),
    ) -> Result<Vec<T>> {
        let repeated = repeated_ids(found.iter().map(&message));
        if repeated.is_empty() {
            return Ok(found);
        }
        let shared = found.iter().map(&message).filter(|(_, message)| repeated.contains(&message.id));
        let owners = self.owners(scope, shared.map(|(thread, _)| thread)).await?;
        let mut is_kept = vec![true; found.len()];
        let mut kept: HashMap<MessageId, Vec<KeptMessage<'_>>> = HashMap::new();
        for (index, entry) in found.iter().enumerate() {
            let (thread, message) = message(entry);
            if !repeated.contains(&message.id) {
                continue;
            }
            let (owner, content) = (owners.get(&thread), &message.content);
            let kept = kept.entry(message.id).or_default();
            match kept.iter_mut().find(|kept| kept.owner == owner && kept.content == content) {
                None => kept.push(KeptMessage { index, owner, content }),
                Some(copy) if preferred == Some(thread) => is_kept[std::mem::replace(&mut copy.index, index)] = false,
                Some(_) => is_kept[index] = false,
            }
        }
        drop(kept);
        Ok(found.into_iter().zip(is_kept).filter_map(|(entry, is_kept)| is_kept.then_some(entry)).collect())
    }

    /// Returns the owners of threads in a tenant's scope, where copies that belong to different users are not duplicates. Returns
    /// nothing in a user's scope.
    async fn owners(&self, scope: &Scope, threads: impl Iterator<Item = ThreadId>) -> Result<HashMap<ThreadId, Owner>> {
        let mut owners = HashMap::new();
        if let Scope::User(..) = scope {
            return Ok(owners);
        }
        for id in threads.collect::<HashSet<_>>() {
            owners.extend(self.find_thread(scope, id).await?.map(|thread| (id, thread.owner)));
        }
        Ok(owners)
    }
}

/// A message that is kept, and its index in the results.
struct KeptMessage<'a> {
    index: usize,
    owner: Option<&'a Owner>,
    content: &'a Content,
}

fn repeated_ids<'a>(messages: impl Iterator<Item = (ThreadId, &'a Message)>) -> HashSet<MessageId> {
    let (mut seen, mut repeated) = (HashSet::new(), HashSet::new());
    for (_, message) in messages {
        if !seen.insert(message.id) {
            repeated.insert(message.id);
        }
    }
    repeated
}
