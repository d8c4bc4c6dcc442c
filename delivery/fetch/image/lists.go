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

// maxTagsHeld bounds, in bytes, the lists that are remembered. Past that, those of the tenant that has most are forgotten: so no
// tenant loses what others do not leave of an even share.
const maxTagsHeld = 32 * limit.MiB

// maxTagLists is how many repositories are remembered of one tenant, those that failed included.
const maxTagLists = 4096

// tagListCost is about what a list takes beside its tags and its key, in bytes: so that empty ones are not for free.
const tagListCost = 512

// tagLists are what is remembered for one tenant.
type tagLists struct {
	now func() time.Time

	mu sync.Mutex
	// answers are the last ones of registries, by key.
	answers *lru.Cache[string, *answer]
	// lists are what each key's list takes, held is their sum.
	lists map[string]heldList
	held  int
}

// answer is what a registry last answered about a repository, or how it failed since.
type answer struct {
	list *tagList
	// at is when it answered.
	at time.Time
	// err is set when it failed since, failures times in a row; it is not asked again before until.
	err      error
	failures int
	until    time.Time
}

// heldList is how many bytes a list takes, and until when it serves.
type heldList struct {
	size  int
	until time.Time
}

// get returns a list that is younger than maxAge, or a failure whose pause is not over; else it asks.
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
		return // It says nothing of the registry.
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

// drop forgets a list.
func (l *tagLists) drop(key string) {
	l.forget(key)
	l.held -= l.lists[key].size
	delete(l.lists, key)
}

// of is what is remembered for a tenant.
func (s *Store) of(tenant string) *tagLists {
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

// hold counts what is remembered. What is forgotten is asked again when it is needed.
func (s *Store) hold(ask *tagAsk, size int) {
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

// mostLocked is what is held in all, and the tenant with most of it.
func (s *Store) mostLocked() (sum int, most string) {
	for tenant, lists := range s.lists {
		sum += lists.held
		if s.lists[most] == nil || lists.held > s.lists[most].held {
			most = tenant
		}
	}
	return sum, most
}

// dropOldLocked forgets the lists that would be asked for anew.
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
