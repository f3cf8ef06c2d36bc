use super::*;
use crate::vectors::{CommitVectors, commit_vectors};
use crate::{Dump, DumpEntry, Owner};

/// Facts that are read from a dump. Records the names of the called methods.
struct DumpFacts<'a> {
    dump: &'a Dump,
    calls: Vec<&'static str>,
}

impl<'a> DumpFacts<'a> {
    fn of(vectors: &'a CommitVectors) -> Self {
        Self { dump: &vectors.dump, calls: Vec::new() }
    }

    fn positions(&self) -> Positions {
        self.dump.thread.as_ref().unwrap().positions
    }

    fn messages(&self) -> impl Iterator<Item = (MessageId, StoredMessageFacts)> {
        self.dump.entries.iter().filter_map(|entry| match entry.clone() {
            DumpEntry::Message { seq, id, external_id, created_at, body, .. } => {
                Some((id, StoredMessageFacts { seq, created_at_micros: created_at.as_micros(), external_id, body }))
            }
            _ => None,
        })
    }
}

impl Facts for DumpFacts<'_> {
    type Error = StoreError;

    fn commit_record(&mut self, key: &IdempotencyKey) -> Result<Option<CommitRecord>, StoreError> {
        self.calls.push("commit_record");
        let found = self.dump.commits.iter().find(|commit| commit.key == *key);
        Ok(found.map(|commit| CommitRecord {
            at: commit.at,
            fingerprint: commit.fingerprint,
            change: commit.change,
            first_seq: commit.first_seq,
            count: commit.count,
        }))
    }

    fn record_version(&mut self, name: &RecordName) -> Result<Option<TaggedNumber>, StoreError> {
        self.calls.push("record_version");
        let mut records = self.dump.records.iter();
        let found = records.find(|found| found.namespace == name.namespace && found.key == name.key);
        Ok(found.map(crate::Record::tagged))
    }

    fn seq_of_id(&mut self, id: MessageId) -> Result<Option<u64>, StoreError> {
        self.calls.push("seq_of_id");
        Ok(self.dump.entries.iter().find_map(|entry| match entry {
            DumpEntry::Message { seq, id: found, .. } | DumpEntry::Tombstone { seq, id: found, .. } => {
                (*found == id).then_some(*seq)
            }
            DumpEntry::Lost { .. } => None,
        }))
    }

    fn seq_of_external_id(&mut self, external_id: &str) -> Result<Option<u64>, StoreError> {
        self.calls.push("seq_of_external_id");
        let found = self.messages().find(|(_, message)| message.external_id.as_deref() == Some(external_id));
        Ok(found.map(|(_, message)| message.seq))
    }

    fn message(&mut self, id: MessageId) -> Result<Option<StoredMessageFacts>, StoreError> {
        self.calls.push("message");
        Ok(self.messages().find(|(found, _)| *found == id).map(|(_, message)| message))
    }

    fn count_messages(&mut self, seqs: Range<u64>) -> Result<u64, StoreError> {
        self.calls.push("count_messages");
        Ok(self.messages().filter(|(_, message)| seqs.contains(&message.seq)).count() as u64)
    }

    fn thread_body(&mut self) -> Result<String, StoreError> {
        self.calls.push("thread_body");
        Ok(self.dump.thread.as_ref().unwrap().body.clone())
    }
}

/// Decides what the batch with this index does, as a store would: checks the batch, then the scope, then calls [`decide`].
fn commit(facts: &mut DumpFacts<'_>, vectors: &CommitVectors, index: usize) -> Result<Decision, StoreError> {
    let vector = vectors.not_applied.get(index).unwrap_or(&vectors.accepted);
    let encoded = vector.batch.encode()?;
    if *vector.scope.tenant_id() != vectors.tenant {
        return Err(StoreError::NotFound(Kind::Thread));
    }
    let target = CommitTarget { access: vector.scope.access(&Owner::Tenant), positions: facts.positions() };
    decide(facts, target, &vector.batch, &encoded, vectors.now)
}

#[test]
fn decide_reports_the_first_failure_in_the_order_of_the_contract() {
    for vectors in commit_vectors() {
        assert!(vectors.not_applied.len() > 170, "{}", vectors.not_applied.len());
        for (index, vector) in vectors.not_applied.iter().chain([&vectors.accepted]).enumerate() {
            let decided = commit(&mut DumpFacts::of(&vectors), &vectors, index);
            let answer = decided.map(|decision| match decision {
                Decision::Answer(outcome) => outcome,
                Decision::Write(plan) => plan.outcome,
            });
            assert_eq!(format!("{answer:?}"), format!("{:?}", vector.expected_result), "{}", vector.name);
        }
    }
}

#[test]
fn decide_queries_no_facts_after_the_first_failure() {
    let [vectors, _] = commit_vectors();
    let calls = |name: &str| {
        let index = vectors.not_applied.iter().position(|vector| vector.name == name).unwrap_or(usize::MAX);
        let mut facts = DumpFacts::of(&vectors);
        drop(commit(&mut facts, &vectors, index));
        facts.calls
    };
    assert_eq!(calls("the caller may only append"), Vec::<&str>::new());
    assert_eq!(calls("the key was used for another request, and a message id is taken"), ["commit_record"]);
    assert_eq!(calls("the thread is at another message, and a record does not exist"), ["commit_record"]);
    let missing_record = calls("a record does not exist, and a message id is taken");
    assert_eq!(missing_record, ["commit_record", "record_version"]);
    let appends = ["commit_record", "seq_of_id", "seq_of_id", "seq_of_id", "seq_of_id"];
    assert_eq!(calls("nothing"), appends, "an append queries its idempotency record and its ids");
}

#[test]
fn plan_counts_each_removed_message_once() {
    let [vectors, _] = commit_vectors();
    let mut facts = DumpFacts::of(&vectors);
    let Positions { seq, first_seq, .. } = facts.positions();
    let ids: Vec<MessageId> = facts.messages().map(|(id, _)| id).collect();
    let target = CommitTarget { access: Access::Full, positions: facts.positions() };
    let mut removed = |erase: &[usize], trim_below| {
        let base = &vectors.accepted.batch;
        let erase = erase.iter().map(|index| ids[*index]).collect();
        let batch = Batch { append: base.append[..2].to_vec(), erase, trim_below, ..base.clone() };
        match decide(&mut facts, target, &batch, &batch.encode().unwrap(), vectors.now).unwrap() {
            Decision::Write(plan) => plan.removed,
            Decision::Answer(outcome) => panic!("{outcome:?}"),
        }
    };
    assert_eq!(removed(&[], None), 0);
    assert_eq!(removed(&[0, 3], None), 2);
    assert_eq!(removed(&[], Some(first_seq)), 0);
    assert_eq!(removed(&[], Some(first_seq + 2)), 2);
    assert_eq!(removed(&[0, 3], Some(first_seq + 2)), 3, "the first message is both erased and trimmed");
    assert_eq!(removed(&[], Some(seq + 1)), 4, "tombstones are not counted");
    assert_eq!(removed(&[0], Some(seq + 2)), 5, "one of the two appended messages is trimmed by the same commit");
}

#[test]
fn ids_of_trimmed_messages_can_be_used_again() {
    let [mut vectors, _] = commit_vectors();
    vectors.dump.thread.as_mut().unwrap().positions.first_seq += 4;
    let mut facts = DumpFacts::of(&vectors);
    let target = CommitTarget { access: Access::Full, positions: facts.positions() };
    let old = facts.messages().collect::<Vec<_>>();
    let mut batch = vectors.accepted.batch.clone();
    batch.append.truncate(2);
    batch.append[0].id = old[0].0;
    batch.append[0].external_id = old[0].1.external_id.clone();
    batch.append[1].external_id = old[3].1.external_id.clone();
    let Decision::Write(plan) = decide(&mut facts, target, &batch, &batch.encode().unwrap(), vectors.now).unwrap()
    else {
        panic!("nothing to write")
    };
    assert_eq!(plan.stale, BTreeSet::from([old[0].1.seq, old[3].1.seq]));
}
