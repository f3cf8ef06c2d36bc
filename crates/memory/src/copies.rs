//! Telling messages that forks share from messages of their own.
//!
//! A fork holds copies of the messages before it, with their ids. A search over several threads finds each of them once.

use std::collections::{HashMap, HashSet};

use threadkeep_core::{Content, Message, MessageId, Owner, Scope, ThreadId};

use crate::{Memory, Result};

impl Memory {
    /// Leaves out what says again what an earlier entry says, being a copy of it: of messages with one id, content and owner
    /// the one in the thread `preferred` stays, else the first.
    pub(crate) async fn leave_out_copies<T>(
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
        let mut stays = vec![true; found.len()];
        let mut kept: HashMap<MessageId, Vec<Kept<'_>>> = HashMap::new();
        for (at, entry) in found.iter().enumerate() {
            let (thread, message) = message(entry);
            if !repeated.contains(&message.id) {
                continue;
            }
            let (owner, content) = (owners.get(&thread), &message.content);
            let kept = kept.entry(message.id).or_default();
            match kept.iter_mut().find(|kept| kept.owner == owner && kept.content == content) {
                None => kept.push(Kept { at, owner, content }),
                Some(twin) if preferred == Some(thread) => stays[std::mem::replace(&mut twin.at, at)] = false,
                Some(_) => stays[at] = false,
            }
        }
        drop(kept);
        Ok(found.into_iter().zip(stays).filter_map(|(entry, stays)| stays.then_some(entry)).collect())
    }

    /// Whose the threads are, where a scope reads those of several owners: two people's copies of one conversation are two.
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

/// A message that stays.
struct Kept<'a> {
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
