//! Routes over the built-in running times, compared with another search over the same facts.

mod compared_routes;

#[test]
fn routes_between_tube_stations_are_the_fastest() {
    // Every ninth origin bounds the time of the test. The step of the data sets checks all.
    compared_routes::check_routes(9);
}
