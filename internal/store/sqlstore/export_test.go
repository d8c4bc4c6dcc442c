package sqlstore

// OfTenant is ofTenant for tests.
var OfTenant = ofTenant

// UsageStatement is usageStatement for tests.
var UsageStatement = usageStatement
