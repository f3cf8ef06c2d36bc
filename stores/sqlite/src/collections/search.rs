//! Finding entries: the words through the index, the nearest by comparing points.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use threadkeep_core::{Embedding, EntryHit, Scope, SearchAnswer, SearchQuery, limits, similarity};

use super::{COLLECTION_MARK, KEPT, find, from_blob, kept};
use crate::connection::Shared;
use crate::error::Result;
use crate::index::{PER_TERM, TERMS, rarity};
use crate::owners;

pub(crate) fn search(shared: &Shared, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
    let name = query.collection.name()?;
    query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
    limits::check_page(query.limit)?;
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        let numbers = owners::of_scope(shared, connection, scope)?;
        let mut parts = Vec::new();
        // A user searches its own part and its tenant's.
        for owner_no in [Some(numbers.tenant_no), numbers.user_no].into_iter().flatten() {
            parts.extend(find(connection, owner_no, name)?);
        }
        let answer = Search { connection, parts, query }.run()?;
        transaction.commit()?;
        Ok(answer)
    })
}

struct Search<'a> {
    connection: &'a Connection,
    /// The numbers of the parts of the collection that are searched.
    parts: Vec<i64>,
    query: &'a SearchQuery,
}

impl Search<'_> {
    fn run(&self) -> Result<SearchAnswer> {
        let mut answer = SearchAnswer { documents: self.count()?, ..SearchAnswer::default() };
        let mut scores: HashMap<i64, f64> = HashMap::new();
        for term in self.query.terms.iter().take(TERMS) {
            let found = self.holding(term)?;
            answer.frequencies.push(found.len() as u64);
            let rarity = rarity(answer.documents, found.len());
            found.into_iter().for_each(|no| *scores.entry(no).or_default() += rarity);
        }
        answer.frequencies.resize(self.query.terms.len(), 0);
        let mut chosen = best(scores, self.query.limit);
        let nearest = best(self.similarities()?, self.query.limit);
        chosen.extend(nearest.into_iter().filter(|near| !chosen.contains(near)).collect::<Vec<_>>());
        for no in chosen {
            answer.entries.extend(self.read(no)?);
        }
        Ok(answer)
    }

    fn count(&self) -> Result<u64> {
        let mut count = 0;
        for part in &self.parts {
            let sql = "SELECT count(*) FROM entries WHERE collection_no = ?1";
            count += self.connection.prepare_cached(sql)?.query_row([part], |row| row.get::<_, i64>(0))?.unsigned_abs();
        }
        Ok(count)
    }

    /// Entries that hold a term, the newest up to a bound.
    fn holding(&self, term: &str) -> Result<Vec<i64>> {
        // Terms as analysis makes them; anything else was never indexed, and must mean nothing to FTS5 either.
        if term.is_empty() || !term.chars().all(char::is_alphanumeric) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for part in &self.parts {
            let pattern = format!("\"{COLLECTION_MARK}{part}\" AND \"{term}\"");
            let sql = "SELECT rowid FROM entry_terms WHERE entry_terms MATCH ?1 ORDER BY rowid DESC LIMIT ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let numbers = statement.query_map(params![pattern, PER_TERM], |row| row.get(0))?;
            found.extend(numbers.collect::<Result<Vec<i64>, _>>()?);
        }
        Ok(found)
    }

    /// How near each entry's point is to the query's.
    fn similarities(&self) -> Result<HashMap<i64, f64>> {
        let mut near = HashMap::new();
        let Some(asked) = &self.query.vector else { return Ok(near) };
        for part in &self.parts {
            let sql = "SELECT no, vector FROM entries WHERE collection_no = ?1 AND model = ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![part, asked.model])?;
            while let Some(row) = rows.next()? {
                let vector = row.get_ref(1)?.as_blob().map(from_blob).unwrap_or_default();
                if let Some(similarity) = similarity(&asked.vector, &vector) {
                    near.insert(row.get(0)?, similarity);
                }
            }
        }
        Ok(near)
    }

    fn read(&self, no: i64) -> Result<Option<EntryHit>> {
        let mut statement = self.connection.prepare_cached(&format!("{KEPT} WHERE e.no = ?1"))?;
        let mut rows = statement.query([no])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (owner, entry) = kept(row)?;
        let near = self.query.vector.as_ref().zip(entry.embedding.as_ref());
        let similarity = near.and_then(|(asked, said)| asked.similarity(said));
        Ok(Some(EntryHit { owner, id: entry.id, text: entry.text, fields: entry.fields, similarity }))
    }
}

/// The best numbers first; of equals the newer.
fn best(scores: HashMap<i64, f64>, limit: usize) -> Vec<i64> {
    let mut ranked: Vec<(i64, f64)> = scores.into_iter().collect();
    ranked.sort_unstable_by(|(no, score), (other_no, other)| other.total_cmp(score).then_with(|| other_no.cmp(no)));
    ranked.into_iter().take(limit).map(|(no, _)| no).collect()
}
