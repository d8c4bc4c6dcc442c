// Package backup writes all that the store has into one file, and reads it into an empty database, of the same kind or the other one. Secrets stay encrypted as they are.
//
// The file has lines of JSON: a header; of each table a line about it, and a line for each row; and an end with the number of rows and a checksum of all bytes before it. Whoever
// wants to know what is in a backup can read it.
package backup

import (
	"time"

	"github.com/kubeop/kubeop/internal/store/database"
)

// format is the version of the file format.
const format = 1

// maxLine is the maximum length of a line, in bytes. The longest value, an answer to a request, is far shorter.
const maxLine = 64 << 20

// Header is the first line.
type Header struct {
	// Format is the version of the file format.
	Format int `json:"kubeopBackup"`
	// Version is the version of the program that made the backup, and Created the time.
	Version string    `json:"version"`
	Created time.Time `json:"created"`
	// Migrations are the migrations of the database.
	Migrations []string `json:"migrations"`
}

// table is the line before the rows of a table.
type table struct {
	Table   string          `json:"table"`
	Columns []string        `json:"columns"`
	Kinds   []database.Kind `json:"kinds"`
	// LastID is the greatest ID that the table has assigned, 0 if it does not number its rows.
	LastID int64 `json:"lastID,omitempty"`
}

// end is the last line.
type end struct {
	Rows int64 `json:"rows"`
	// SHA256 is the checksum of all lines before, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// quoted quotes a name for a statement.
func quoted(name string) string { return `"` + name + `"` }
