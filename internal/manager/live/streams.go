package live

import "sync"

// How many streams there may be at once.
const (
	maxStreamsOfCaller = 20
	maxStreams         = 1000
)

// streams counts the streams of each caller.
type streams struct {
	mu  sync.Mutex
	of  map[string]int
	all int
}

// begin counts a stream of a caller, until end is called. It reports false if there are too many.
func (s *streams) begin(caller string) (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[caller] >= maxStreamsOfCaller || s.all >= maxStreams {
		return nil, false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[caller]++
	s.all++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[caller]--; s.of[caller] == 0 {
			delete(s.of, caller)
		}
	}, true
}
