package image

import (
	"sync"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
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
	mu     sync.Mutex
	memory cache.Memory[*tagList]
	// lists are what each key's list takes, held is their sum.
	lists map[string]heldList
	held  int
}

// heldList is how many bytes a list takes, and until when it serves.
type heldList struct {
	size  int
	until time.Time
}

// get returns what is remembered of a list, or a failure that still serves; else it asks.
func (l *tagLists) get(key string, q cache.Question, ask func() (*tagList, error)) (*tagList, error) {
	list, serves, err := l.recall(key, q)
	if serves {
		return list, err
	}
	list, err = ask()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory.Remember(key, q, list, err)
	return list, err
}

func (l *tagLists) recall(key string, q cache.Question) (*tagList, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.memory.Recall(key, q)
}

// last returns the last list, however old; nil for none.
func (l *tagLists) last(key string) *tagList {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, _ := l.memory.Last(key)
	return list
}

func (l *tagLists) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory.Forget(key)
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
		s.lists[tenant] = &tagLists{memory: cache.NewMemory[*tagList](s.now, maxTagLists), lists: map[string]heldList{}}
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
