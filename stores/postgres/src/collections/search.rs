//! Searches collections by terms, through the index, and by vector similarity.

use threadkeep_core::{
    Embedding, EntryHit, FieldFilter, Map, Scope, SearchAnswer, SearchQuery, StoreError, limits, similarity,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::scale;
use crate::error::Result;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed, unsigned};

/// The maximum number of entries read per term. Bounds the cost of a common term.
const MAX_ENTRIES: i64 = 4_000;
/// The maximum number of terms of a query; further terms are ignored.
const MAX_TERMS: usize = 32;
/// The number of vectors fetched from the server in addition to the requested number: the server ranks in single
/// precision, and this module ranks the vectors again in double precision.
const MARGIN: usize = 64;
/// The maximum number of vector components that this module compares if the server has no pgvector: 20,000 vectors of
/// 384 dimensions.
const MAX_COMPONENTS: usize = 8_000_000;

/// The number of an entry's collection, and its own number.
type EntryKey = (i64, i64);

pub(crate) async fn search(shared: &Shared, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
    let name = query.collection.name()?;
    query.check_collection()?;
    query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
    FieldFilter::check_all(&query.filters)?;
    limits::check_page(query.limit)?;
    let caller = Caller::of(scope);
    let search = Search { shared, caller: &caller, name, query, filter: filter_condition(&query.filters) };
    let mut answer = SearchAnswer::default();
    let mut selected = search.by_terms(&mut answer).await?;
    if let Some(embedding) = &query.vector {
        let nearest = search.nearest(embedding).await?;
        selected.extend(nearest.into_iter().filter(|key| !selected.contains(key)).collect::<Vec<_>>());
    }
    answer.entries = search.read(&selected).await?;
    Ok(answer)
}

struct Search<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    name: &'a str,
    query: &'a SearchQuery,
    /// The filters as a condition of a text search; empty without filters.
    filter: String,
}

impl Search<'_> {
    /// Finds the entries with the rarest terms. Writes the number of entries and the frequencies of the terms into `answer`.
    async fn by_terms(&self, answer: &mut SearchAnswer) -> Result<Vec<EntryKey>> {
        // Text that cannot be a term was never indexed; the empty term stands for it and matches nothing.
        let used = self.query.terms.iter().take(MAX_TERMS).map(String::as_str);
        let mut terms: Vec<Option<&str>> =
            used.map(|term| Some(if term.chars().all(char::is_alphanumeric) { term } else { "" })).collect();
        if self.query.is_filter_only() {
            // No term: all entries that pass the filters.
            terms.push(None);
        }
        let sql =
            "SELECT documents, frequencies, collection_nos, nos FROM threadkeep.search_entries($1, $2, $3, $4, $5)";
        let values: [Parameter<'_>; 5] = [
            (&self.name, Type::TEXT),
            (&terms, Type::TEXT_ARRAY),
            (&MAX_ENTRIES, Type::INT8),
            (&signed(self.query.limit as u64), Type::INT8),
            (&self.filter, Type::TEXT),
        ];
        let answers = self.shared.read(self.caller, &[(sql, &values)]).await?;
        let row = answers[0].first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
        answer.documents = unsigned(row, 0)?;
        answer.frequencies = get::<Vec<i64>>(row, 1)?.into_iter().map(i64::unsigned_abs).collect();
        answer.frequencies.resize(self.query.terms.len(), 0);
        Ok(get::<Vec<i64>>(row, 2)?.into_iter().zip(get::<Vec<i64>>(row, 3)?).collect())
    }

    /// Finds the entries with the most similar vectors. Of equally similar entries, the newer one comes first.
    async fn nearest(&self, embedding: &Embedding) -> Result<Vec<EntryKey>> {
        let Some(vector) = scale(&embedding.vector) else { return Ok(Vec::new()) };
        let max_local = MAX_COMPONENTS / vector.len();
        let mut fetch_limit = self.query.limit + MARGIN;
        loop {
            let rows = self.fetch_nearest(embedding, &vector, fetch_limit, max_local + 1).await?;
            let mut ranked = Vec::with_capacity(rows.len());
            let mut last = None;
            for row in &rows {
                last = get::<Option<f64>>(row, 0)?;
                if let Some(similarity) = similarity(&vector, &get::<Vec<f32>>(row, 3)?) {
                    ranked.push(((get(row, 1)?, get(row, 2)?), similarity));
                }
            }
            ranked.sort_unstable_by(|((_, entry_no), score), ((_, other_no), other): &(EntryKey, f64)| {
                other.total_cmp(score).then_with(|| other_no.cmp(entry_no))
            });
            let worst = ranked.get(self.query.limit - 1).map(|(_, similarity)| *similarity);
            if let Some(last) = last {
                // Vectors that the server did not return can be more similar than the last one only by the server's rounding error.
                let rounding_error = vector.len() as f64 * f64::from(f32::EPSILON);
                let is_certain = worst.is_some_and(|worst| 1.0 - last + rounding_error < worst);
                if rows.len() >= fetch_limit && !is_certain {
                    fetch_limit *= 4;
                    continue;
                }
            } else if rows.len() > max_local {
                return Err(too_many_vectors(max_local, rows.len()));
            }
            return Ok(ranked.into_iter().take(self.query.limit).map(|(key, _)| key).collect());
        }
    }

    /// Fetches the `limit` nearest vectors with their distances. Without pgvector, fetches up to `local_limit` vectors
    /// and no distances.
    async fn fetch_nearest(
        &self,
        embedding: &Embedding,
        vector: &[f32],
        limit: usize,
        local_limit: usize,
    ) -> Result<Vec<Row>> {
        let sql = "SELECT distance, collection_no, no, point FROM threadkeep.near_points($1, $2, $3, $4, $5, $6)";
        let values: [Parameter<'_>; 6] = [
            (&self.name, Type::TEXT),
            (&embedding.model, Type::TEXT),
            (&vector, Type::FLOAT4_ARRAY),
            (&signed(limit as u64), Type::INT8),
            (&signed(local_limit as u64), Type::INT8),
            (&self.filter, Type::TEXT),
        ];
        Ok(self.shared.read(self.caller, &[(sql, &values)]).await?.swap_remove(0))
    }

    /// Reads entries in the order of their keys. Skips entries that were removed in the meantime.
    async fn read(&self, keys: &[EntryKey]) -> Result<Vec<EntryHit>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let (collections, numbers): (Vec<i64>, Vec<i64>) = keys.iter().copied().unzip();
        let model = self.query.vector.as_ref().map(|embedding| embedding.model.as_str());
        let sql = "SELECT e.owner, e.id, e.text, e.fields, p.point \
                   FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS c (collection_no, no, place) \
                   JOIN threadkeep.entries e USING (collection_no, no) \
                   LEFT JOIN threadkeep.entry_points p ON p.collection_no = e.collection_no AND p.no = e.no \
                   AND p.model = $3 ORDER BY c.place";
        let values: [Parameter<'_>; 3] =
            [(&collections, Type::INT8_ARRAY), (&numbers, Type::INT8_ARRAY), (&model, Type::TEXT)];
        let answers = self.shared.read(self.caller, &[(sql, &values)]).await?;
        let hits = answers[0].iter().map(|row| self.hit(row));
        // The term of a filter is a hash, which other values may share.
        hits.filter(|hit| hit.as_ref().map_or(true, |hit| self.query.passes(&hit.fields))).collect()
    }

    fn hit(&self, row: &Row) -> Result<EntryHit> {
        let fields = get::<Option<&str>>(row, 3)?.map_or(Ok(Map::new()), serde_json::from_str);
        let fields = fields.map_err(|_| StoreError::corrupt("entry", "fields are not a JSON object"))?;
        let vector: Option<Vec<f32>> = get(row, 4)?;
        let vectors = self.query.vector.as_ref().zip(vector);
        let similarity = vectors.and_then(|(wanted, vector)| similarity(&wanted.vector, &vector));
        Ok(EntryHit { owner: row::owner(get(row, 0)?)?, id: get(row, 1)?, text: get(row, 2)?, fields, similarity })
    }
}

/// Returns the filters as a condition in the syntax of `tsquery`; empty without filters.
fn filter_condition(filters: &[FieldFilter]) -> String {
    let quoted = |term: &String| format!("'{term}'");
    let any = |filter: &FieldFilter| match filter.terms().as_slice() {
        // No entry has this term.
        [] => "'\u{e004}'".to_owned(),
        terms => format!("({})", terms.iter().map(quoted).collect::<Vec<_>>().join(" | ")),
    };
    filters.iter().map(any).collect::<Vec<_>>().join(" & ")
}

fn too_many_vectors(max: usize, actual: usize) -> crate::error::PostgresError {
    let limit = "number of vectors compared without the pgvector extension";
    StoreError::LimitExceeded { limit, max: max as u64, actual: actual as u64 }.into()
}
