//! Removing duplicate results from forks.
//!
//! A fork contains copies of the messages before it, with their ids. A search over several threads returns each of them once.

use std::collections::{HashMap, HashSet};

use threadkeep_core::{Content, Message, MessageId, Owner, Scope, ThreadId};

use crate::{Memory, Result};

impl Memory {
    /// Removes copies: of messages with the same id, content and owner, keeps the one in the thread `preferred`, otherwise the
    /// first.
    pub(crate) async fn remove_duplicates<T>(
        &self,
        scope: &Scope,
        found: Vec<T>,
        preferred: Option<ThreadId>,
        message: impl Fn(&T) -> (ThreadId, &Message),
    ) -> Result<Vec<T>> {
        let repeated = repeated(found.iter().map(&message));
        if repeated.is_empty() {
            return Ok(found);
        }
        let shared = found.iter().map(&message).filter(|(_, message)| repeated.contains(&message.id));
        let owners = self.owners(scope, shared.map(|(thread, _)| thread)).await?;
        let mut is_kept = vec![true; found.len()];
        let mut kept: HashMap<MessageId, Vec<KeptMessage<'_>>> = HashMap::new();
        for (at, entry) in found.iter().enumerate() {
            let (thread, message) = message(entry);
            if !repeated.contains(&message.id) {
                continue;
            }
            let (owner, content) = (owners.get(&thread), &message.content);
            let kept = kept.entry(message.id).or_default();
            match kept.iter_mut().find(|kept| kept.owner == owner && kept.content == content) {
                None => kept.push(KeptMessage { at, owner, content }),
                Some(copy) if preferred == Some(thread) => is_kept[std::mem::replace(&mut copy.at, at)] = false,
                Some(_) => is_kept[at] = false,
            }
        }
        drop(kept);
        Ok(found.into_iter().zip(is_kept).filter_map(|(entry, is_kept)| is_kept.then_some(entry)).collect())
    }

    /// The owners of threads, for a tenant's scope: copies that belong to two users are not duplicates.
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

/// A message that is kept, and its index.
struct KeptMessage<'a> {
    at: usize,
    owner: Option<&'a Owner>,
    content: &'a Content,
}

fn repeated<'a>(messages: impl Iterator<Item = (ThreadId, &'a Message)>) -> HashSet<MessageId> {
    let (mut seen, mut repeated) = (HashSet::new(), HashSet::new());
    for (_, message) in messages {
        if !seen.insert(message.id) {
            repeated.insert(message.id);
        }
    }
    repeated
}
