package sqlstore

// OfTenant is ofTenant for tests.
var OfTenant = ofTenant
