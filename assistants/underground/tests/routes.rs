//! Routes found with the built-in running times, compared with another search over the same data.

mod compared_routes;

#[test]
fn routes_between_tube_stations_are_the_fastest() {
    // Only every ninth origin, to limit the duration. The test with the data sets checks all of them.
    compared_routes::check_routes(9);
}
