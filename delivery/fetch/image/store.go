// Package image chooses the tags of images by policies.
package image

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

const (
	// maxTags and maxTagBytes bound the list of one repository, maxTagPages the requests it takes. Registries give 100 to
	// 1000 tags at once.
	maxTags     = 50_000
	maxTagBytes = 10 * limit.MiB
	maxTagPages = 500
	// policyInterval is the time between two looks at a registry where the policy names none.
	policyInterval = 5 * time.Minute
)

// Repository is one of images, with credentials.
type Repository struct {
	// Name of the repository as container runtimes read it, without tag and digest: "registry/name", or a name of the Docker
	// Hub.
	Name string
	// Pull are the contents of pull secrets: .dockerconfigjson, and ca.crt where the registry's authority is not the system's.
	// The first that knows the registry is used.
	Pull []transport.Auth
	// Tenant on whose behalf it is asked.
	Tenant string
}

// Chosen is what an image policy chose.
type Chosen struct {
	// Reference is "name:tag@digest".
	Reference string
	Tag       string
	// Until is when the registry is to be asked again.
	Until time.Time
}

// Store lists the tags of image repositories and remembers them for the interval of the policy, one list for all of a
// tenant who ask with the same credentials: tenants wait for no answer that another may give up. Safe for concurrent use.
type Store struct {
	network *transport.Network
	now     func() time.Time
	plain   []string
	apart   apart.Runner

	limits   transport.Timeouts
	arrivals atomic.Int64
	asks     singleflight.Group[*tagList]
	heads    singleflight.Group[string]

	mu sync.Mutex
	// lists are those of each tenant.
	lists map[string]*tagLists
}

// tagList is what a registry answered about one repository.
type tagList struct {
	at   time.Time
	tags []string

	mu sync.Mutex
	// digests are those of tags, chosen the tags by policy.
	digests, chosen map[string]string
	// refused are policies that were over a limit, by the same.
	refused map[string]error
}

// NewStore makes a store that reaches registries over the network, takes the time from now and speaks to the plain registries
// without TLS. Patterns that cost much are held against tags apart.
func NewStore(network *transport.Network, now func() time.Time, plain []string, apart apart.Runner) *Store {
	s := &Store{network: network, now: now, plain: plain, apart: apart, limits: transport.DefaultTimeouts(), lists: map[string]*tagLists{}}
	s.asks.Clock, s.heads.Clock = &s.arrivals, &s.arrivals
	return s
}

// PolicyInterval is the time between two looks at the registry.
func PolicyInterval(p *v1alpha1.ImagePolicy) time.Duration {
	if p.Interval == nil {
		return policyInterval
	}
	return p.Interval.Duration
}

// Accepts reports whether a reference that Choose returned once is still one that the policy may choose from the repository.
func Accepts(name string, p *v1alpha1.ImagePolicy, reference, tag string) bool {
	c, err := newTagChooser(p)
	return err == nil && strings.HasPrefix(reference, name+":"+tag+"@") && c.accepts(tag)
}

// Known is what Choose returns where it need not ask the registry; it waits for nothing.
func (s *Store) Known(image Repository, p *v1alpha1.ImagePolicy) (Chosen, bool) {
	ask, err := newTagAsk(image, p, false)
	if err != nil {
		return Chosen{}, false // Choose says why.
	}
	return s.recall(ask)
}

// Choose returns the image that the policy wants, with the digest that its tag has now. The registry is asked when what it
// answered is older than the policy's interval; anew asks it in any case. The time it may take is that of ctx.
//
// Errors: ErrNoTag, ErrNotFound, ErrAuthentication, ErrInvalid, ErrTooLarge; any other is transient. They do not name the
// repository.
func (s *Store) Choose(ctx context.Context, image Repository, p *v1alpha1.ImagePolicy, anew bool) (Chosen, error) {
	ask, err := newTagAsk(image, p, anew)
	if err != nil {
		return Chosen{}, err
	}
	if chosen, ok := s.recall(ask); ok {
		return chosen, nil
	}
	// Who does not ask anew is served by any answer.
	if anew {
		ask.arrived = s.arrivals.Add(1)
	}
	chosen, err := transport.Within(ctx, s.limits, func(ctx context.Context) (Chosen, error) { return s.choose(ctx, ask) })
	return chosen, ask.auth.NameSecret(err)
}

// tagAsk is one question.
type tagAsk struct {
	chooser *tagChooser
	// name is how the app writes the repository, host and path are how it is asked, and by whom.
	name, host, path string
	auth             transport.Auth
	// key identifies the list of tags: by the repository, the credentials, the tenant, and how long it serves.
	key, tenant string
	every       time.Duration
	arrived     int64
	anew        bool
}

func newTagAsk(image Repository, p *v1alpha1.ImagePolicy, anew bool) (*tagAsk, error) {
	chooser, err := newTagChooser(p)
	if err != nil {
		return nil, err
	}
	host, repository := split(image.Name)
	place := host + "/" + repository
	auth, err := pullAuth(image.Pull, place)
	if err != nil {
		return nil, err
	}
	every := PolicyInterval(p)
	return &tagAsk{
		chooser: chooser, name: image.Name, host: host, path: repository, auth: auth, every: every, anew: anew, tenant: image.Tenant,
		key: strings.Join([]string{auth.Digest(place), image.Tenant, every.String()}, " "),
	}, nil
}

// recall answers from what is remembered, without anything that waits.
func (s *Store) recall(ask *tagAsk) (Chosen, bool) {
	list := s.of(ask.tenant).last(ask.key)
	if list == nil || ask.anew || s.now().Sub(list.at) >= ask.every {
		return Chosen{}, false
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	tag := list.chosen[ask.chooser.policy]
	digest := list.digests[tag]
	return ask.answer(list, tag, digest), digest != ""
}

func (a *tagAsk) answer(list *tagList, tag, digest string) Chosen {
	return Chosen{Reference: a.name + ":" + tag + "@" + digest, Tag: tag, Until: list.at.Add(a.every)}
}

func (s *Store) choose(ctx context.Context, ask *tagAsk) (Chosen, error) {
	list, err := s.list(ctx, ask)
	if err != nil {
		return Chosen{}, err
	}
	tag, err := s.tag(ctx, ask, list)
	if err != nil {
		return Chosen{}, err
	}
	digest, err := s.digest(ctx, ask, list, tag)
	if err != nil {
		return Chosen{}, err
	}
	return ask.answer(list, tag, digest), nil
}

// tag asks the policy, once for all who have the same; where that was over a limit, not again for this list.
func (s *Store) tag(ctx context.Context, ask *tagAsk, list *tagList) (string, error) {
	list.mu.Lock()
	tag, known := list.chosen[ask.chooser.policy]
	refused := list.refused[ask.chooser.policy]
	list.mu.Unlock()
	if known || refused != nil {
		return tag, refused
	}
	var err error
	if ask.chooser.dear(list.tags) {
		tag, err = s.chosenApart(ctx, ask, list.tags)
	} else {
		tag, err = ask.chooser.choose(ctx, list.tags)
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	switch {
	case err == nil:
		list.chosen[ask.chooser.policy] = tag
	case errors.Is(err, failure.ErrTooLarge):
		list.refused[ask.chooser.policy] = err
	}
	return tag, err
}

// list returns the tags of the repository. A list is remembered by the interval too: who wants to know more often does not
// have others ask more often.
func (s *Store) list(ctx context.Context, ask *tagAsk) (*tagList, error) {
	lists := s.of(ask.tenant)
	// One after the other, so that the second caller finds the answer to the first.
	return s.asks.Do(ctx, ask.key, ask.arrived, func() (*tagList, error) {
		if ask.anew {
			lists.forget(ask.key)
		}
		return lists.get(ask.key, ask.every, func() (*tagList, error) {
			list, err := s.fetch(ctx, ask)
			if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), failure.ErrSlow) {
				err = errors.Join(err, context.Canceled) // What ended with the time of who asked is not remembered for others.
			}
			return list, err
		})
	})
}

func (s *Store) fetch(ctx context.Context, ask *tagAsk) (*tagList, error) {
	r, err := s.open(ask)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	at := s.now()
	tags, size, err := r.tags(ctx)
	if err != nil {
		return nil, err
	}
	s.hold(ask, size)
	return &tagList{at: at, tags: tags, digests: map[string]string{}, chosen: map[string]string{}, refused: map[string]error{}}, nil
}

// digest returns the digest of a tag, as old as the list at most.
func (s *Store) digest(ctx context.Context, ask *tagAsk, list *tagList, tag string) (string, error) {
	return s.heads.Do(ctx, ask.key+" "+tag, ask.arrived, func() (string, error) {
		if known := list.digestOf(tag); known != "" {
			return known, nil
		}
		r, err := s.open(ask)
		if err != nil {
			return "", err
		}
		defer r.Close()
		about, err := r.Resolve(ctx, tag)
		if err != nil {
			return "", r.explain(err, "tag "+failure.Printable(tag)+", which it lists")
		}
		list.mu.Lock()
		defer list.mu.Unlock()
		list.digests[tag] = about.Digest.String()
		return about.Digest.String(), nil
	})
}

func (l *tagList) digestOf(tag string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.digests[tag]
}
