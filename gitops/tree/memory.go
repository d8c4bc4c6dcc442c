package tree

import "slices"

// finding is something wrong in a file, before it is known what that holds back. The file is relative to Scope.Path.
type finding struct {
	file string
	line int
	why  string
	// err is the store's, when the file could not be read.
	err error
}

// unread is the finding that the store failed.
func unread(file string, err error) finding {
	return finding{file: file, why: "reading it from the repository: " + err.Error(), err: err}
}

// verdict is what one file, or one app's folder, was found to be. It is shared between readings and never changed.
type verdict struct {
	// object is the Tenant, Project or App as JSON, a tenth of what it takes otherwise, as there are thousands; nil when there
	// are findings.
	object   []byte
	findings []finding
}

// claim is everything a verdict depends on: content, place, and whose repository it is.
type claim struct {
	digest, path, tenant string
}

// memory holds the verdicts one reading needed. Keeping just those of the last commit bounds it by the size of the
// repository and needs no eviction.
type memory map[claim]verdict

func (r *Reader) lastOf(repository string) memory {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.seen[repository]
}

func (r *Reader) remember(repository string, m memory) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen[repository] = m
}

// recall returns the verdict on the content at path, from the last reading where that is unchanged. What the store could
// not give is no verdict on the content and not remembered.
func (p *pass) recall(path string, judge func() verdict) (verdict, string) {
	digest, err := p.files.Digest(path)
	if err != nil {
		return verdict{findings: []finding{unread(path, err)}}, ""
	}
	c := claim{digest: digest, path: path, tenant: p.scope.Tenant}
	v, known := p.last[c]
	if !known {
		v = judge()
	}
	if !slices.ContainsFunc(v.findings, func(f finding) bool { return f.err != nil }) {
		p.next[c] = v
	}
	return v, digest
}
