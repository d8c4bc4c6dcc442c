// Package docs has the pages that commands show.
package docs

import _ "embed"

// Errors is errors.md: each code of a problem and each reason of a condition, with what to do.
//
//go:embed errors.md
var Errors string
