package image

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/lru"
)

// maxTagsHeld bounds the cached lists, in bytes. Beyond it, lists of the tenant that has most are dropped, so no tenant loses lists while
// it has less than an even share.
const maxTagsHeld = 32 * limit.MiB

// maxTagLists is how many repositories are cached for one tenant, including those that failed.
const maxTagLists = 4096

// tagListCost is roughly the memory of a list beside its tags and its key, in bytes, so that empty lists count, too.
const tagListCost = 512

// tagLists is the cache of one tenant.
type tagLists struct {
	now func() time.Time

	mu sync.Mutex
	// answers are the registries' last answers, by key.
	answers *lru.Cache[string, *answer]
	// lists has the size of each key's list, held is their sum.
	lists map[string]heldList
	held  int
}

// answer is a registry's last answer about a repository, or its failure since then.
type answer struct {
	list *tagList
	// at is the time of the answer.
	at time.Time
	// err is the failure since the answer; there were failures of them in a row. There is no new request before until.
	err      error
	failures int
	until    time.Time
}

// heldList is the size of a list in bytes, and the time until which it is used.
type heldList struct {
	size  int
	until time.Time
}

// get returns a list that is younger than maxAge, or a failure if its pause is not over; otherwise it calls ask.
func (l *tagLists) get(key string, maxAge time.Duration, ask func() (*tagList, error)) (*tagList, error) {
	list, serves, err := l.recall(key, maxAge)
	if serves {
		return list, err
	}
	list, err = ask()
	l.remember(key, maxAge, list, err)
	return list, err
}

func (l *tagLists) recall(key string, maxAge time.Duration) (list *tagList, serves bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.answers.Get(key)
	switch {
	case !ok:
		return nil, false, nil
	case known.err != nil:
		return nil, l.now().Before(known.until), known.err
	}
	return known.list, l.now().Sub(known.at) < maxAge, nil
}

func (l *tagLists) remember(key string, maxAge time.Duration, list *tagList, err error) {
	if errors.Is(err, context.Canceled) {
		return // That is no failure of the registry.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.answers.Get(key)
	if !ok {
		known = &answer{}
		l.answers.Add(key, known)
	}
	if err == nil {
		*known = answer{list: list, at: l.now()}
		return
	}
	known.err = err
	known.failures++
	known.until = l.now().Add(min(backoff.Pause(known.failures), maxAge))
}

// last returns the last list, however old; nil for none.
func (l *tagLists) last(key string) *tagList {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.answers.Get(key); ok {
		return known.list
	}
	return nil
}

func (l *tagLists) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers.Remove(key)
}

// drop removes a list.
func (l *tagLists) drop(key string) {
	l.forget(key)
	l.held -= l.lists[key].size
	delete(l.lists, key)
}

// listsOf returns the cache of a tenant.
func (s *Store) listsOf(tenant string) *tagLists {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofLocked(tenant)
}

func (s *Store) ofLocked(tenant string) *tagLists {
	if s.lists[tenant] == nil {
		s.lists[tenant] = &tagLists{now: s.now, answers: lru.New[string, *answer](maxTagLists, nil), lists: map[string]heldList{}}
	}
	return s.lists[tenant]
}

// hold counts a list, and drops lists beyond the bound. A dropped list is requested again when it is needed.
func (s *Store) hold(ask *tagRequest, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.ofLocked(ask.tenant)
	taken := heldList{size: size + 2*len(ask.key) + tagListCost, until: s.now().Add(ask.every)}
	own.held += taken.size - own.lists[ask.key].size
	own.lists[ask.key] = taken
	if sum, _ := s.mostLocked(); sum <= maxTagsHeld {
		return
	}
	s.dropOldLocked()
	if sum, most := s.mostLocked(); sum > maxTagsHeld {
		delete(s.lists, most)
	}
}

// mostLocked returns the size of all lists, and the tenant with the largest part of it.
func (s *Store) mostLocked() (sum int, most string) {
	for tenant, lists := range s.lists {
		sum += lists.held
		if s.lists[most] == nil || lists.held > s.lists[most].held {
			most = tenant
		}
	}
	return sum, most
}

// dropOldLocked drops the lists that are too old to be used.
func (s *Store) dropOldLocked() {
	now := s.now()
	for tenant, lists := range s.lists {
		for key, list := range lists.lists {
			if !now.Before(list.until) {
				lists.drop(key)
			}
		}
		if len(lists.lists) == 0 {
			delete(s.lists, tenant)
		}
	}
}
