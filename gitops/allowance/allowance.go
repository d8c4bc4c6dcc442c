// Package allowance limits how much of a repository is read: the size of the files of one tenant, or of one kind. Pure.
package allowance

import (
	"fmt"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
)

// Allowance limits the size of the files that declare the Projects and Apps of one tenant, or the objects of one kind. It counts them in the order of Git. Files
// beyond the limit are not read, or not kept, and their objects are not changed. A nil Allowance has no limit.
type Allowance struct {
	// Files says which files the limit is for; Unit is what they are counted in. Limit is in bytes.
	Files, Unit string
	Limit       int64
	spent       Spent
}

// Spent is how much of an Allowance was spent up to one point in time.
type Spent struct {
	bytes int64
	// over is how many findings there were about an exceeded limit.
	over int
}

// Fits reports whether there is room for a file of this size.
func (a *Allowance) Fits(size int64) bool {
	return a == nil || a.spent.bytes+budget.Declared(size) <= a.Limit
}

// Exhausted reports whether there is no room for even the smallest file. No more files are read then.
func (a *Allowance) Exhausted() bool { return !a.Fits(0) }

// Spend counts bytes that were read.
func (a *Allowance) Spend(bytes int64) {
	if a != nil {
		a.spent.bytes += bytes
	}
}

// Reuse spends the bytes that an unchanged folder took in the earlier reading. It returns false if the folder must be read again: a file in
// it exceeded the limit then (over), or the folder exceeds the limit now.
func (a *Allowance) Reuse(bytes int64, over bool) bool {
	switch {
	case a == nil:
		return true
	case over, a.spent.bytes+bytes > a.Limit:
		return false
	}
	a.spent.bytes += bytes
	return true
}

// Now returns what was spent so far.
func (a *Allowance) Now() Spent {
	if a == nil {
		return Spent{}
	}
	return a.spent
}

// Since returns what was spent since a point in time, and whether the limit was exceeded since then.
func (a *Allowance) Since(s Spent) (bytes int64, over bool) {
	if a == nil {
		return 0, false
	}
	return a.spent.bytes - s.bytes, a.spent.over > s.over
}

// Exceeded returns the finding that a file exceeds the limit.
func (a *Allowance) Exceeded(file string, size int64) document.Finding {
	a.spent.over++
	what := fmt.Sprintf("with this file of %d bytes and those before it, %s take too much", size, a.Files)
	over := &budget.Exceeded{Field: budget.TreeBytes, What: what, Is: a.spent.bytes + budget.Declared(size), Limit: a.Limit}
	return document.Finding{File: file, Code: code.OverLimit, Why: over.Error()}
}

// Rest returns the finding that an entry of a folder and all entries after it are not read, because nothing is left.
func (a *Allowance) Rest(file string, left int) document.Finding {
	f := a.Exceeded(file, 0)
	f.Why = fmt.Sprintf("this and the %d %s after it are not read: %s", left, a.Unit, f.Why)
	return f
}
