//! Finding entries: the words through the index, the nearest by comparing points.

use threadkeep_core::{Embedding, EntryHit, Map, Scope, SearchAnswer, SearchQuery, StoreError, limits, similarity};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::scaled;
use crate::error::Result;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, signed, unsigned};

/// How many entries are looked at for each term: bounds the cost of a common word.
const PER_TERM: i64 = 4_000;
/// Terms of a question that are looked up.
const TERMS: usize = 32;
/// How many more points than are asked for the server names: what it compares to single precision is ranked here.
const MARGIN: usize = 64;
/// Numbers of points that are compared here where the server cannot, some 20,000 points of 384.
const PLAIN_NUMBERS: usize = 8_000_000;

/// Where an entry stands: its part of the collection, and its number.
type Place = (i64, i64);

pub(crate) async fn search(shared: &Shared, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
    let name = query.collection.name()?;
    query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
    limits::check_page(query.limit)?;
    let caller = Caller::of(scope);
    let search = Search { shared, caller: &caller, name, query };
    let mut answer = SearchAnswer::default();
    let mut chosen = search.holding_words(&mut answer).await?;
    if let Some(asked) = &query.vector {
        let nearest = search.nearest(asked).await?;
        chosen.extend(nearest.into_iter().filter(|near| !chosen.contains(near)).collect::<Vec<_>>());
    }
    answer.entries = search.read(&chosen).await?;
    Ok(answer)
}

struct Search<'a> {
    shared: &'a Shared,
    caller: &'a Caller,
    name: &'a str,
    query: &'a SearchQuery,
}

impl Search<'_> {
    /// The entries with the rarest terms; and into the answer, how many there are of what.
    async fn holding_words(&self, answer: &mut SearchAnswer) -> Result<Vec<Place>> {
        // Terms as analysis makes them; anything else was never indexed.
        let looked_up = self.query.terms.iter().take(TERMS).map(String::as_str);
        let terms: Vec<&str> =
            looked_up.map(|term| if term.chars().all(char::is_alphanumeric) { term } else { "" }).collect();
        let sql = "SELECT documents, frequencies, collection_nos, nos FROM threadkeep.search_entries($1, $2, $3, $4)";
        let values: [Parameter<'_>; 4] = [
            (&self.name, Type::TEXT),
            (&terms, Type::TEXT_ARRAY),
            (&PER_TERM, Type::INT8),
            (&signed(self.query.limit as u64), Type::INT8),
        ];
        let answers = self.shared.read(self.caller, &[(sql, &values)]).await?;
        let row = answers[0].first().ok_or_else(|| StoreError::corrupt("answer", "of no row"))?;
        answer.documents = unsigned(row, 0)?;
        answer.frequencies = get::<Vec<i64>>(row, 1)?.into_iter().map(i64::unsigned_abs).collect();
        answer.frequencies.resize(self.query.terms.len(), 0);
        Ok(get::<Vec<i64>>(row, 2)?.into_iter().zip(get::<Vec<i64>>(row, 3)?).collect())
    }

    /// The entries whose points are the nearest, of equals the newer.
    async fn nearest(&self, asked: &Embedding) -> Result<Vec<Place>> {
        let Some(point) = scaled(&asked.vector) else { return Ok(Vec::new()) };
        let most_plain = PLAIN_NUMBERS / point.len();
        let mut asked_for = self.query.limit + MARGIN;
        loop {
            let rows = self.near_points(asked, &point, asked_for, most_plain + 1).await?;
            let mut ranked = Vec::with_capacity(rows.len());
            let mut last = None;
            for row in &rows {
                last = get::<Option<f64>>(row, 0)?;
                if let Some(similarity) = similarity(&point, &get::<Vec<f32>>(row, 3)?) {
                    ranked.push(((get(row, 1)?, get(row, 2)?), similarity));
                }
            }
            ranked.sort_unstable_by(|((_, no), near), ((_, other_no), other_near): &(Place, f64)| {
                other_near.total_cmp(near).then_with(|| other_no.cmp(no))
            });
            let worst = ranked.get(self.query.limit - 1).map(|(_, similarity)| *similarity);
            if let Some(last) = last {
                // Beyond the last that the server named there may be nearer ones only as far as it rounded.
                let rounded = point.len() as f64 * f64::from(f32::EPSILON);
                let is_clear = worst.is_some_and(|worst| 1.0 - last + rounded < worst);
                if rows.len() >= asked_for && !is_clear {
                    asked_for *= 4;
                    continue;
                }
            } else if rows.len() > most_plain {
                return Err(too_many(most_plain, rows.len()));
            }
            return Ok(ranked.into_iter().take(self.query.limit).map(|(place, _)| place).collect());
        }
    }

    async fn near_points(&self, asked: &Embedding, point: &[f32], limit: usize, bound: usize) -> Result<Vec<Row>> {
        let sql = "SELECT distance, collection_no, no, point FROM threadkeep.near_points($1, $2, $3, $4, $5)";
        let values: [Parameter<'_>; 5] = [
            (&self.name, Type::TEXT),
            (&asked.model, Type::TEXT),
            (&point, Type::FLOAT4_ARRAY),
            (&signed(limit as u64), Type::INT8),
            (&signed(bound as u64), Type::INT8),
        ];
        Ok(self.shared.read(self.caller, &[(sql, &values)]).await?.swap_remove(0))
    }

    /// The entries at these places, in their order; one that was removed meanwhile is left out.
    async fn read(&self, places: &[Place]) -> Result<Vec<EntryHit>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let (parts, numbers): (Vec<i64>, Vec<i64>) = places.iter().copied().unzip();
        let model = self.query.vector.as_ref().map(|asked| asked.model.as_str());
        let sql = "SELECT e.owner, e.id, e.text, e.fields, p.point \
                   FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS c (collection_no, no, place) \
                   JOIN threadkeep.entries e USING (collection_no, no) \
                   LEFT JOIN threadkeep.entry_points p ON p.collection_no = e.collection_no AND p.no = e.no \
                   AND p.model = $3 ORDER BY c.place";
        let values: [Parameter<'_>; 3] =
            [(&parts, Type::INT8_ARRAY), (&numbers, Type::INT8_ARRAY), (&model, Type::TEXT)];
        let answers = self.shared.read(self.caller, &[(sql, &values)]).await?;
        answers[0].iter().map(|row| self.hit(row)).collect()
    }

    fn hit(&self, row: &Row) -> Result<EntryHit> {
        let fields = get::<Option<&str>>(row, 3)?.map_or(Ok(Map::new()), serde_json::from_str);
        let fields = fields.map_err(|_| StoreError::corrupt("entry", "its fields are no JSON object"))?;
        let point: Option<Vec<f32>> = get(row, 4)?;
        let near = self.query.vector.as_ref().zip(point);
        let similarity = near.and_then(|(asked, point)| similarity(&asked.vector, &point));
        Ok(EntryHit { owner: row::owner(get(row, 0)?)?, id: get(row, 1)?, text: get(row, 2)?, fields, similarity })
    }
}

fn too_many(max: usize, actual: usize) -> crate::error::PostgresError {
    let limit = "points compared without the extension pgvector";
    StoreError::LimitExceeded { limit, max: max as u64, actual: actual as u64 }.into()
}
