//! Fingerprints of requests with an idempotency key: digests of the caller's arguments, without generated ids and times.

use threadkeep_core::{Batch, Fingerprint, IdempotencyKey, MessageId, Result, Timestamp, codec};

use crate::Draft;

/// The encoding of a request. The fingerprint is its digest.
#[derive(Debug, Default)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Adds a draft: its content, and the id, external id and creation time that the caller set.
    pub(crate) fn append(&mut self, draft: &Draft) -> Result<()> {
        self.tag(b'a');
        self.text(&codec::encode_content(&draft.content)?);
        self.optional_id(draft.id);
        self.optional_text(draft.external_id.as_deref());
        self.optional_instant(draft.created_at);
        Ok(())
    }

    /// Returns the digest of the drafts and of all other changes in a batch.
    ///
    /// Expectations and conditions are excluded, because a store recognises a repeated request before it checks them.
    pub(crate) fn finish(mut self, batch: &Batch) -> Result<Fingerprint> {
        for replacement in &batch.replace {
            self.tag(b'r');
            self.optional_id(Some(replacement.id));
            self.text(&codec::encode_content(&replacement.content)?);
        }
        for id in &batch.erase {
            self.tag(b'e');
            self.optional_id(Some(*id));
        }
        for put in &batch.put {
            self.tag(b'p');
            self.text(&put.name.namespace.to_string());
            self.text(&put.name.key);
            self.text(put.value.as_str());
            self.optional_instant(put.expires_at);
        }
        for name in &batch.delete {
            self.tag(b'd');
            self.text(&name.namespace.to_string());
            self.text(&name.key);
        }
        self.patch(batch);
        Ok(Fingerprint::of(&self.bytes))
    }

    fn patch(&mut self, batch: &Batch) {
        self.tag(b't');
        let title = batch.patch.title.as_ref();
        self.tag(u8::from(title.is_some()));
        self.optional_text(title.and_then(Option::as_deref));
        for map in [&batch.patch.metadata, &batch.patch.state] {
            let text = map.as_ref().map(|map| serde_json::Value::Object(map.clone()).to_string());
            self.optional_text(text.as_deref());
        }
        self.tag(u8::from(batch.patch.expires_at.is_some()));
        self.optional_instant(batch.patch.expires_at.flatten());
    }

    fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    /// Adds text, preceded by its length, which makes the encoding of two adjacent strings unambiguous.
    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        self.tag(u8::from(text.is_some()));
        self.text(text.unwrap_or(""));
    }

    fn optional_id(&mut self, id: Option<MessageId>) {
        self.tag(u8::from(id.is_some()));
        self.bytes.extend_from_slice(id.map_or(uuid::Uuid::nil(), |id| id.0).as_bytes());
    }

    fn optional_instant(&mut self, at: Option<Timestamp>) {
        self.tag(u8::from(at.is_some()));
        self.bytes.extend_from_slice(&at.map_or(0, Timestamp::as_micros).to_be_bytes());
    }
}

/// The fingerprint of a request that appends drafts.
pub(crate) fn of_drafts(key: &IdempotencyKey, drafts: &[Draft]) -> Result<Fingerprint> {
    let IdempotencyKey::FromCaller(_) = key else { return Ok(FOR_GENERATED_KEYS) };
    let mut request = Request::default();
    drafts.iter().try_for_each(|draft| request.append(draft))?;
    request.finish(&Batch::new(key.clone(), FOR_GENERATED_KEYS))
}

/// The fingerprint of all requests with a generated key. Such a key is used by a single call, which only retries the same batch,
/// so no digest is needed to recognise other requests.
pub(crate) const FOR_GENERATED_KEYS: Fingerprint = Fingerprint([0; 8]);

#[cfg(test)]
mod tests {
    use threadkeep_core::{Content, Role};

    use super::*;

    fn fingerprint(drafts: &[Draft]) -> Fingerprint {
        of_drafts(&IdempotencyKey::FromCaller("key".to_owned()), drafts).unwrap()
    }

    #[test]
    fn fingerprints_cover_everything_the_caller_set() {
        let plain = Draft::user("hello");
        let id = MessageId::from_name(b"id");
        let at: Timestamp = "2026-11-21T08:30:00Z".parse().unwrap();
        let different = [
            vec![plain.clone()],
            vec![plain.clone(), plain.clone()],
            vec![Draft::user("hello!")],
            vec![Draft::new(Content::text(Role::Assistant, "hello"))],
            vec![plain.clone().with_id(id)],
            vec![plain.clone().with_external_id("id")],
            vec![plain.clone().with_created_at(at)],
        ];
        let digests: std::collections::HashSet<_> = different.iter().map(|drafts| fingerprint(drafts)).collect();
        assert_eq!(digests.len(), different.len());
        assert_eq!(fingerprint(&different[0]), fingerprint(&[plain]));
    }
}
