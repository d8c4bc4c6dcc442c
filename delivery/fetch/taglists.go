package fetch

// maxTagsHeld bounds, in bytes, the lists that are remembered. Past that, those of the tenant that has most are forgotten: so no
// tenant loses what others do not leave of an even share.
const maxTagsHeld = 32 * mebibyte

// tagLists are what is remembered for one tenant.
type tagLists struct {
	*Recent[*tagList]
	// sizes are those of the lists, held is their sum.
	sizes map[string]int
	held  int
}

// of is what is remembered for a tenant.
func (s *TagStore) of(tenant string) *tagLists {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofLocked(tenant)
}

func (s *TagStore) ofLocked(tenant string) *tagLists {
	if s.lists[tenant] == nil {
		s.lists[tenant] = &tagLists{Recent: &Recent[*tagList]{Now: s.now}, sizes: map[string]int{}}
	}
	return s.lists[tenant]
}

// hold counts what is remembered. What is forgotten is asked again when it is needed.
func (s *TagStore) hold(ask *tagAsk, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.ofLocked(ask.tenant)
	own.held += size - own.sizes[ask.key]
	own.sizes[ask.key] = size
	sum, most := 0, ask.tenant
	for tenant, lists := range s.lists {
		sum += lists.held
		if lists.held > s.lists[most].held {
			most = tenant
		}
	}
	if sum > maxTagsHeld {
		delete(s.lists, most)
	}
}
