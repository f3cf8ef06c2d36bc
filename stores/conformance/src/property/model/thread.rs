//! One thread of the model: what a commit is checked against, and what it changes.

use threadkeep_core::{
    Batch, Change, CommitOutcome, Conflict, Document, DocumentState, Effect, Expected, Kind, Message, MessageId,
    Positions, Result, StoreError, Thread, Timestamp,
};

use super::ModelThread;

impl ModelThread {
    pub(super) fn seen(&self) -> Thread {
        Thread { message_count: self.messages.len() as u64, ..self.thread.clone() }
    }

    pub(super) fn find(&self, id: MessageId) -> Result<usize> {
        self.messages.iter().position(|message| message.id == id).ok_or(StoreError::NotFound(Kind::Message))
    }

    pub(super) fn check(&self, batch: &Batch) -> Result<()> {
        let positions = self.thread.positions;
        match batch.expected {
            Some(Expected::Seq(expected)) if expected != positions.seq => {
                return Err(Conflict::Seq { expected, actual: positions.seq }.into());
            }
            Some(Expected::Change(expected)) if expected != positions.change => {
                return Err(Conflict::Change { expected, actual: positions.change }.into());
            }
            _ => {}
        }
        for condition in &batch.require {
            let (namespace, key) = (&condition.name.namespace, &condition.name.key);
            let actual = self.documents.iter().find(|it| it.namespace == *namespace && it.key == *key);
            let actual = actual.map(|it| it.version);
            let met = match condition.state {
                DocumentState::Absent => actual.is_none(),
                DocumentState::Version(version) => actual == Some(version),
            };
            if !met {
                return Err(Conflict::Document { namespace: namespace.clone(), key: key.clone(), actual }.into());
            }
        }
        for message in &batch.append {
            let by_id = self.messages.iter().any(|it| it.id == message.id);
            let by_tombstone = self.tombstones.iter().any(|(_, id)| *id == message.id);
            let by_name =
                self.messages.iter().any(|it| it.external_id.is_some() && it.external_id == message.external_id);
            if by_id || by_tombstone || by_name {
                return Err(Conflict::MessageId { id: message.id, seq: 0 }.into());
            }
        }
        for id in batch.replace.iter().map(|it| it.id).chain(batch.erase.iter().copied()) {
            self.find(id)?;
        }
        if batch.trim_below.is_some_and(|below| below > positions.seq + batch.append.len() as u64 + 1) {
            return Err(StoreError::invalid("trim_below", "beyond the end"));
        }
        Ok(())
    }

    pub(super) fn apply(&mut self, batch: &Batch, now: Timestamp) -> CommitOutcome {
        let Positions { seq, change, .. } = self.thread.positions;
        let count = batch.append.len() as u64;
        if batch.is_empty() {
            return CommitOutcome { change, first_seq: seq + 1, count: 0, replayed: false };
        }
        let change = change + 1;
        let outcome = CommitOutcome { change, first_seq: seq + 1, count, replayed: false };
        let mut effects = Vec::new();
        if count > 0 {
            effects.push(Effect::Appended { first_seq: seq + 1, count });
        }
        for (message, seq) in batch.append.iter().zip(seq + 1..) {
            self.messages.push(Message {
                seq,
                id: message.id,
                external_id: message.external_id.clone(),
                revision: 0,
                created_at: message.created_at,
                content: message.content.clone(),
            });
        }
        for replacement in &batch.replace {
            for message in self.messages.iter_mut().filter(|message| message.id == replacement.id) {
                message.content = replacement.content.clone();
                message.revision += 1;
                effects.push(Effect::Replaced { seq: message.seq, id: message.id });
            }
        }
        for id in &batch.erase {
            if let Ok(place) = self.find(*id) {
                let seq = self.messages.remove(place).seq;
                self.tombstones.push((seq, *id));
                effects.push(Effect::Erased { seq, id: *id });
            }
        }
        self.thread.positions.seq += count;
        self.trim(batch.trim_below, &mut effects);
        self.change_documents(batch, change, &mut effects);
        if !batch.patch.is_empty() {
            effects.push(Effect::Patched);
            if let Some(title) = &batch.patch.title {
                self.thread.title.clone_from(title);
            }
            if let Some(expires_at) = batch.patch.expires_at {
                self.thread.expires_at = expires_at;
            }
        }
        self.thread.positions.change = change;
        self.thread.updated_at = now;
        self.log.push(Change { change, at: now, effects });
        self.records.push(Record { key: batch.key.clone(), fingerprint: batch.fingerprint, outcome, at: now });
        outcome
    }

    fn trim(&mut self, below: Option<u64>, effects: &mut Vec<Effect>) {
        let Some(below) = below.filter(|below| *below > self.thread.positions.first_seq) else { return };
        self.messages.retain(|message| message.seq >= below);
        self.tombstones.retain(|(seq, _)| *seq >= below);
        self.thread.positions.first_seq = below;
        effects.push(Effect::Trimmed { first_seq: below });
    }

    fn change_documents(&mut self, batch: &Batch, change: u64, effects: &mut Vec<Effect>) {
        for put in &batch.put {
            let (namespace, key) = (put.name.namespace.clone(), put.name.key.clone());
            self.documents.retain(|it| it.namespace != namespace || it.key != key);
            let (value, expires_at) = (put.value.clone(), put.expires_at);
            self.documents.push(Document { namespace, key, value, version: change, expires_at });
            effects.push(Effect::DocumentPut { name: put.name.clone(), version: change });
        }
        for name in &batch.delete {
            let before = self.documents.len();
            self.documents.retain(|it| it.namespace != name.namespace || it.key != name.key);
            if self.documents.len() < before {
                effects.push(Effect::DocumentDeleted { name: name.clone() });
            }
        }
    }
}

pub(super) fn names_twice(batch: &Batch) -> bool {
    let messages: Vec<MessageId> = batch
        .append
        .iter()
        .map(|it| it.id)
        .chain(batch.replace.iter().map(|it| it.id))
        .chain(batch.erase.iter().copied())
        .collect();
    let external: Vec<_> = batch.append.iter().filter_map(|it| it.external_id.as_ref()).collect();
    let documents: Vec<_> = batch.put.iter().map(|it| &it.name).chain(&batch.delete).collect();
    repeats(&messages) || repeats(&external) || repeats(&documents)
}

fn repeats<T: PartialEq>(names: &[T]) -> bool {
    names.iter().enumerate().any(|(place, name)| names[..place].contains(name))
}
