//! Searches collections: by terms with an index, by vector similarity with a linear scan.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use threadkeep_core::{Embedding, EntryHit, FieldFilter, Scope, SearchAnswer, SearchQuery, limits, similarity};

use super::{COLLECTION_MARK, SELECT_ENTRY, find, from_blob, parse_fields, read_entry};
use crate::connection::Shared;
use crate::error::Result;
use crate::index::{MAX_POSITIONS, MAX_TERMS, rarity};
use crate::owners;

pub(crate) fn search(shared: &Shared, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
    let name = query.collection.name()?;
    query.check_collection()?;
    query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
    FieldFilter::check_all(&query.filters)?;
    limits::check_page(query.limit)?;
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        let numbers = owners::resolve_scope(shared, connection, scope)?;
        let mut collections = Vec::new();
        // A user's search includes the tenant's collection of the same name.
        for owner_no in [Some(numbers.tenant_no), numbers.user_no].into_iter().flatten() {
            collections.extend(find(connection, owner_no, name)?);
        }
        let answer = Search { connection, collections, query }.run()?;
        transaction.commit()?;
        Ok(answer)
    })
}

struct Search<'a> {
    connection: &'a Connection,
    /// The numbers of the collections to search.
    collections: Vec<i64>,
    query: &'a SearchQuery,
}

impl Search<'_> {
    fn run(&self) -> Result<SearchAnswer> {
        let mut answer = SearchAnswer { documents: self.count()?, ..SearchAnswer::default() };
        let mut scores: HashMap<i64, f64> = HashMap::new();
        let condition = filter_condition(&self.query.filters);
        if self.query.is_filter_only() {
            scores.extend(self.matching(&condition)?.into_iter().map(|entry_no| (entry_no, 0.0)));
        }
        for term in self.query.terms.iter().take(MAX_TERMS) {
            let found = self.entries_with(term, &condition)?;
            answer.frequencies.push(found.len() as u64);
            let rarity = rarity(answer.documents, found.len() as u64);
            found.into_iter().for_each(|entry_no| *scores.entry(entry_no).or_default() += rarity);
        }
        answer.frequencies.resize(self.query.terms.len(), 0);
        let mut selected = select_best(scores, self.query.limit);
        let nearest = select_best(self.similarities()?, self.query.limit);
        selected.extend(nearest.into_iter().filter(|entry_no| !selected.contains(entry_no)).collect::<Vec<_>>());
        for entry_no in selected {
            answer.entries.extend(self.read(entry_no)?);
        }
        Ok(answer)
    }

    fn count(&self) -> Result<u64> {
        let mut count = 0;
        for collection_no in &self.collections {
            let sql = "SELECT count(*) FROM entries WHERE collection_no = ?1";
            count += self
                .connection
                .prepare_cached(sql)?
                .query_row([collection_no], |row| row.get::<_, i64>(0))?
                .unsigned_abs();
        }
        Ok(count)
    }

    /// Finds the newest entries that contain a term and meet a condition.
    fn entries_with(&self, term: &str, condition: &str) -> Result<Vec<i64>> {
        // Text that cannot be a term was never indexed, and could contain FTS5 syntax.
        if term.is_empty() || !term.chars().all(char::is_alphanumeric) {
            return Ok(Vec::new());
        }
        self.matching(&format!(" AND \"{term}\"{condition}"))
    }

    /// Finds the newest entries that meet a condition in FTS5 syntax.
    fn matching(&self, condition: &str) -> Result<Vec<i64>> {
        let mut found = Vec::new();
        for collection_no in &self.collections {
            let pattern = format!("\"{COLLECTION_MARK}{collection_no}\"{condition}");
            let sql = "SELECT rowid FROM entry_terms WHERE entry_terms MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let numbers = statement.query_map(params![pattern, MAX_POSITIONS], |row| row.get(0))?;
            found.extend(numbers.collect::<Result<Vec<i64>, _>>()?);
        }
        Ok(found)
    }

    /// Returns the similarity of each entry's vector to the query's vector.
    fn similarities(&self) -> Result<HashMap<i64, f64>> {
        let mut similarities = HashMap::new();
        let Some(query_vector) = &self.query.vector else { return Ok(similarities) };
        for collection_no in &self.collections {
            let sql = "SELECT no, vector, fields FROM entries WHERE collection_no = ?1 AND model = ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![collection_no, query_vector.model])?;
            while let Some(row) = rows.next()? {
                if !self.query.filters.is_empty() && !self.query.passes(&parse_fields(row.get(2)?)?) {
                    continue;
                }
                let vector = row.get_ref(1)?.as_blob().map(from_blob).unwrap_or_default();
                if let Some(similarity) = similarity(&query_vector.vector, &vector) {
                    similarities.insert(row.get(0)?, similarity);
                }
            }
        }
        Ok(similarities)
    }

    fn read(&self, entry_no: i64) -> Result<Option<EntryHit>> {
        let mut statement = self.connection.prepare_cached(&format!("{SELECT_ENTRY} WHERE e.no = ?1"))?;
        let mut rows = statement.query([entry_no])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (owner, entry) = read_entry(row)?;
        // The term of a filter is a hash, which other values may share.
        if !self.query.passes(&entry.fields) {
            return Ok(None);
        }
        let vectors = self.query.vector.as_ref().zip(entry.embedding.as_ref());
        let similarity = vectors.and_then(|(query_vector, embedding)| query_vector.similarity(embedding));
        Ok(Some(EntryHit { owner, id: entry.id, text: entry.text, fields: entry.fields, similarity }))
    }
}

/// Returns the filters as a condition in FTS5 syntax, to be appended to another condition.
fn filter_condition(filters: &[FieldFilter]) -> String {
    let quoted = |term: &String| format!("\"{term}\"");
    let any = |filter: &FieldFilter| match filter.terms().as_slice() {
        // No entry has this term.
        [] => " AND \"\u{e004}\"".to_owned(),
        terms => format!(" AND ({})", terms.iter().map(quoted).collect::<Vec<_>>().join(" OR ")),
    };
    filters.iter().map(any).collect()
}

/// Returns the entries with the highest scores, best first. If scores are equal, newer entries come first.
fn select_best(scores: HashMap<i64, f64>, limit: usize) -> Vec<i64> {
    let mut ranked: Vec<(i64, f64)> = scores.into_iter().collect();
    ranked.sort_unstable_by(|(entry_no, score), (other_no, other)| {
        other.total_cmp(score).then_with(|| other_no.cmp(entry_no))
    });
    ranked.into_iter().take(limit).map(|(entry_no, _)| entry_no).collect()
}
