package build

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxMemos is how many bytes of compressed answers are cached for all apps.
	maxMemos = 16 << 20
	// memoCost is the approximate overhead of an entry in bytes.
	memoCost = 512
)

// memos cache the answer about the last source of each app, so that an unchanged source is not evaluated again at each reconcile. If the
// cache is full, it drops the least recently used entries of the tenant with the most bytes. The zero value is ready. Safe for concurrent
// use.
type memos struct {
	// most bounds the bytes; 0 means maxMemos.
	most int

	mu    sync.Mutex
	of    map[types.NamespacedName]*memo
	bytes map[string]int // by tenant
	total int
	clock int64
}

// memo is the answer about one source. The source is identified by its input and by its files: by their identity, or by the parts of them
// that were read.
type memo struct {
	tenant, input, identity, reads string
	// answer is compressed.
	answer []byte
	used   int64
}

func (m *memo) size() int {
	return memoCost + len(m.input) + len(m.identity) + len(m.reads) + len(m.answer)
}

// answers reports whether the memo is about the requested source.
func (m *memo) answers(req *Request) bool {
	if m.input != req.Input {
		return false
	}
	return m.identity == req.Identity || m.reads != "" && req.Same != nil && req.Same(m.reads)
}

// get returns the cached answer about the same source, and the record of the files that were read; nil if there is none.
func (m *memos) get(req *Request) (answer []byte, reads string, err error) {
	m.mu.Lock()
	found := m.of[req.App]
	if found != nil {
		m.clock++
		found.used = m.clock
	}
	m.mu.Unlock()
	if found == nil || !found.answers(req) { // Fields other than used never change, so no lock is needed.
		return nil, "", nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(found.answer))
	if err == nil {
		answer, err = io.ReadAll(unzipped)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading what was built before: %w", err)
	}
	return answer, found.reads, nil
}

// put replaces the cached answer of an app.
func (m *memos) put(req *Request, answer []byte, reads string) error {
	var zipped bytes.Buffer
	into, err := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
	if err == nil {
		_, err = into.Write(answer)
	}
	if err == nil {
		err = into.Close()
	}
	if err != nil {
		return fmt.Errorf("remembering what was built: %w", err)
	}
	fresh := &memo{tenant: req.Tenant, input: req.Input, identity: req.Identity, reads: reads, answer: bytes.Clone(zipped.Bytes())}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of, m.bytes = map[types.NamespacedName]*memo{}, map[string]int{}
	}
	m.drop(req.App)
	m.clock++
	fresh.used = m.clock
	m.of[req.App] = fresh
	m.count(fresh, fresh.size())
	most := m.most
	if most == 0 {
		most = maxMemos
	}
	for m.total > most {
		m.drop(m.superfluous())
	}
	return nil
}

// forget drops the cached answer of an app.
func (m *memos) forget(app types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(app)
}

func (m *memos) drop(app types.NamespacedName) {
	if was := m.of[app]; was != nil {
		delete(m.of, app)
		m.count(was, -was.size())
	}
}

func (m *memos) count(one *memo, bytes int) {
	m.total += bytes
	if m.bytes[one.tenant] += bytes; m.bytes[one.tenant] == 0 {
		delete(m.bytes, one.tenant)
	}
}

// superfluous returns the app to drop: the least recently used one of the tenant with the most bytes.
func (m *memos) superfluous() (app types.NamespacedName) {
	var oldest *memo
	for name, one := range m.of {
		more := oldest == nil || m.bytes[one.tenant] > m.bytes[oldest.tenant]
		if more || m.bytes[one.tenant] == m.bytes[oldest.tenant] && one.used < oldest.used {
			app, oldest = name, one
		}
	}
	return app
}
