use threadkeep_core::{EntryHit, IndexEntry, Owner, Result, Scope, SearchAnswer, SearchQuery};

use super::{State, Tenant};
use crate::search::{matched_terms, rarity_key};

impl State {
    pub(crate) fn upsert_entries(&mut self, scope: &Scope, collection: &str, entries: Vec<IndexEntry>) -> Result<()> {
        IndexEntry::check_all(&entries)?;
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        for entry in entries {
            tenant.entries.insert((scope.default_owner(), collection.to_owned(), entry.id.clone()), entry);
        }
        Ok(())
    }

    pub(crate) fn remove_entries(&mut self, scope: &Scope, collection: &str, ids: &[String]) -> u64 {
        let Some(tenant) = self.tenants.get_mut(scope.tenant_id()) else { return 0 };
        let entry_key = |id: &String| (scope.default_owner(), collection.to_owned(), id.clone());
        ids.iter().filter_map(|id| tenant.entries.remove(&entry_key(id))).count() as u64
    }

    pub(crate) fn remove_collections(&mut self, scope: &Scope) -> u64 {
        let Some(tenant) = self.tenants.get_mut(scope.tenant_id()) else { return 0 };
        let (owner, before) = (scope.default_owner(), tenant.entries.len());
        tenant.entries.retain(|(entry_owner, ..), _| *entry_owner != owner);
        (before - tenant.entries.len()) as u64
    }

    pub(crate) fn search_entries(&self, scope: &Scope, collection: &str, query: &SearchQuery) -> SearchAnswer {
        let mut answer = SearchAnswer { frequencies: vec![0; query.terms.len()], ..SearchAnswer::default() };
        let Some(tenant) = self.tenants.get(scope.tenant_id()) else { return answer };
        let mut candidates = Vec::new();
        for (owner, entry) in tenant.searched_entries(scope, collection) {
            answer.documents += 1;
            if !query.passes(&entry.fields) {
                continue;
            }
            let terms = matched_terms(&entry.text, query);
            terms.iter().for_each(|term| answer.frequencies[*term] += 1);
            let vectors = query.vector.as_ref().zip(entry.embedding.as_ref());
            let similarity = vectors.and_then(|(query_vector, entry_vector)| query_vector.similarity(entry_vector));
            candidates.push(Candidate { owner, entry, terms, similarity });
        }
        candidates.sort_by_key(|candidate| rarity_key(&candidate.terms, &answer.frequencies));
        let (by_terms, mut by_vector): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| !candidate.terms.is_empty() || query.is_filter_only());
        by_vector.extend(by_terms.iter().skip(query.limit).cloned());
        by_vector.retain(|candidate| candidate.similarity.is_some());
        by_vector.sort_by(|a, b| b.similarity.unwrap_or(-1.0).total_cmp(&a.similarity.unwrap_or(-1.0)));
        let hits = by_terms.iter().take(query.limit).chain(by_vector.iter().take(query.limit));
        answer.entries = hits.map(Candidate::to_hit).collect();
        answer
    }
}

impl Tenant {
    /// Returns the entries of a collection that a search in the scope includes: those of the scope's owner and of the tenant.
    fn searched_entries<'a>(
        &'a self,
        scope: &'a Scope,
        collection: &'a str,
    ) -> impl Iterator<Item = (&'a Owner, &'a IndexEntry)> {
        let is_searched = move |owner: &Owner| *owner == Owner::Tenant || *owner == scope.default_owner();
        let entries = self.entries.iter().filter(move |((owner, name, _), _)| name == collection && is_searched(owner));
        entries.map(|((owner, ..), entry)| (owner, entry))
    }
}

/// An entry with its matched terms and its similarity to the query's vector.
#[derive(Clone)]
struct Candidate<'a> {
    owner: &'a Owner,
    entry: &'a IndexEntry,
    terms: Vec<usize>,
    similarity: Option<f64>,
}

impl Candidate<'_> {
    fn to_hit(&self) -> EntryHit {
        let IndexEntry { id, text, fields, .. } = self.entry.clone();
        EntryHit { owner: self.owner.clone(), id, text, fields, similarity: self.similarity }
    }
}
