// Package image chooses the tags of images by policies.
package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/kubeop/kubeop/delivery/few"
)

const (
	// maxTags and maxTagBytes bound the list of one repository, maxTagPages the number of requests for it. Registries return 100 to 1000
	// tags at once.
	maxTags     = 50_000
	maxTagBytes = 10 * limit.MiB
	maxTagPages = 500
	// policyInterval is the time between two requests to a registry if the policy sets none.
	policyInterval = 5 * time.Minute
)

// Repository is a repository of images, with credentials.
type Repository struct {
	// Name of the repository as container runtimes read it, without tag and digest: "registry/name", or a name on Docker Hub.
	Name string
	// Pull are the contents of pull secrets: .dockerconfigjson, and ca.crt for a registry with its own certificate authority. The first
	// that has credentials for the registry is used.
	Pull []transport.Auth
	// Registry says how the registry is reached if Pull has no credentials for it; nil for without any.
	Registry *transport.Access
	// Tenant for whom the requests are made.
	Tenant string
}

// Chosen is what an image policy chose.
type Chosen struct {
	// Reference is "name:tag@digest".
	Reference string
	Tag       string
	// Until is when the registry is due to be contacted again.
	Until time.Time
}

// Store lists the tags of image repositories and caches them for the interval of the policy: one list for all apps of a tenant with the
// same credentials. Tenants do not share a request, so no tenant can cancel one that another waits for. Safe for concurrent use.
type Store struct {
	network *transport.Network
	now     func() time.Time
	plain   []string
	apart   apart.Runner

	limits   transport.Timeouts
	arrivals atomic.Int64
	listing  singleflight.Group[*tagList]
	heads    singleflight.Group[string]

	mu sync.Mutex
	// lists are the caches of the tenants.
	lists map[string]*tagLists
}

// tagList is a registry's answer about one repository.
type tagList struct {
	at   time.Time
	tags []string

	mu sync.Mutex
	// digests are the digests of tags, chosen the tags by policy.
	digests, chosen map[string]string
	// refused are the errors of policies that exceeded a limit, by policy.
	refused map[string]error
}

// NewStore returns a Store that connects to registries over the network, takes the time from now and uses no TLS for the plain registries.
// Expensive patterns are matched in a process of its own.
func NewStore(network *transport.Network, now func() time.Time, plain []string, apart apart.Runner) *Store {
	s := &Store{network: network, now: now, plain: plain, apart: apart, limits: transport.DefaultTimeouts(), lists: map[string]*tagLists{}}
	s.listing.Clock, s.heads.Clock = &s.arrivals, &s.arrivals
	return s
}

// PolicyInterval returns the time between two requests to the registry.
func PolicyInterval(p *v1alpha1.ImagePolicy) time.Duration {
	if p.Interval == nil {
		return policyInterval
	}
	return p.Interval.Duration
}

// Accepts reports whether the policy may still choose a reference of the repository that Choose returned earlier.
func Accepts(name string, p *v1alpha1.ImagePolicy, reference, tag string) bool {
	c, err := newTagChooser(p)
	return err == nil && strings.HasPrefix(reference, name+":"+tag+"@") && c.accepts(tag)
}

// Known returns the result of Choose if that needs no request to the registry. It never waits.
func (s *Store) Known(image Repository, p *v1alpha1.ImagePolicy) (Chosen, bool) {
	ask, err := newTagRequest(image, p, false)
	if err != nil {
		return Chosen{}, false // Choose returns the reason.
	}
	return s.recall(ask)
}

// Choose returns the image that the policy selects, with the digest that its tag has now. It contacts the registry when the cached answer
// is older than the policy's interval, and always if anew is set. ctx bounds its time.
//
// Errors: ErrNoTag, ErrNotFound, ErrAuthentication, ErrInvalid, ErrTooLarge; any other is transient. They do not name the
// repository.
func (s *Store) Choose(ctx context.Context, image Repository, p *v1alpha1.ImagePolicy, anew bool) (Chosen, error) {
	ask, err := newTagRequest(image, p, anew)
	if err != nil {
		return Chosen{}, err
	}
	if chosen, ok := s.recall(ask); ok {
		return chosen, nil
	}
	// Without anew, any cached answer will do.
	if anew {
		ask.arrived = s.arrivals.Add(1)
	}
	chosen, err := transport.Within(ctx, s.limits, func(ctx context.Context) (Chosen, error) { return s.choose(ctx, ask) })
	return chosen, ask.access.Auth.NameSecret(err)
}

// tagRequest is one request to choose a tag.
type tagRequest struct {
	chooser *tagChooser
	// name is the repository as the app writes it; host and path are used for the request.
	name, host, path string
	access           transport.Access
	// key identifies the list of tags: by the repository, the credentials, the tenant, and how long it is used.
	key, tenant string
	every       time.Duration
	arrived     int64
	anew        bool
}

func newTagRequest(image Repository, p *v1alpha1.ImagePolicy, anew bool) (*tagRequest, error) {
	chooser, err := newTagChooser(p)
	if err != nil {
		return nil, err
	}
	host, repository := split(image.Name)
	access, place, err := image.access()
	if err != nil {
		return nil, err
	}
	every := PolicyInterval(p)
	return &tagRequest{
		chooser: chooser, name: image.Name, host: host, path: repository, access: access, every: every, anew: anew, tenant: image.Tenant,
		key: strings.Join([]string{access.Auth.Digest(place), image.Tenant, every.String()}, " "),
	}, nil
}

// Access returns how the registry is reached.
func (r Repository) Access() (transport.Access, error) {
	access, _, err := r.access()
	return access, err
}

// access is Access, with the place that the credentials are for.
func (r Repository) access() (access transport.Access, place string, err error) {
	host, repository := split(r.Name)
	place = host + "/" + repository
	auth, err := pullAuth(r.Pull, place)
	if err != nil || len(auth.DockerConfig) > 0 || r.Registry == nil {
		return transport.Access{Auth: auth}, place, err
	}
	access = *r.Registry
	access.Auth.CA = slices.Concat(access.Auth.CA, auth.CA)
	return access, fmt.Sprint(place, access.Insecure), nil
}

// recall answers from the cache, without waiting.
func (s *Store) recall(ask *tagRequest) (Chosen, bool) {
	list := s.listsOf(ask.tenant).last(ask.key)
	if list == nil || ask.anew || s.now().Sub(list.at) >= ask.every {
		return Chosen{}, false
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	tag := list.chosen[ask.chooser.policy]
	digest := list.digests[tag]
	return ask.answer(list, tag, digest), digest != ""
}

func (a *tagRequest) answer(list *tagList, tag, digest string) Chosen {
	return Chosen{Reference: a.name + ":" + tag + "@" + digest, Tag: tag, Until: list.at.Add(a.every)}
}

func (s *Store) choose(ctx context.Context, ask *tagRequest) (Chosen, error) {
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

// tag runs the policy, once for all callers with the same policy. A policy that exceeded a limit is not run again for this list.
func (s *Store) tag(ctx context.Context, ask *tagRequest, list *tagList) (string, error) {
	list.mu.Lock()
	tag, known := list.chosen[ask.chooser.policy]
	refused := list.refused[ask.chooser.policy]
	list.mu.Unlock()
	if known || refused != nil {
		return tag, refused
	}
	var err error
	if ask.chooser.isExpensive(list.tags) {
		tag, err = s.chooseInProcess(ctx, ask, list.tags)
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

// list returns the tags of the repository. The interval is part of the cache key: an app with a shorter interval does not make others send
// more requests.
func (s *Store) list(ctx context.Context, ask *tagRequest) (*tagList, error) {
	lists := s.listsOf(ask.tenant)
	// One after the other, so that the second caller finds the answer to the first.
	return s.listing.Do(ctx, ask.key, ask.arrived, func() (*tagList, error) {
		if ask.anew {
			lists.forget(ask.key)
		}
		return lists.get(ask.key, ask.every, func() (*tagList, error) {
			list, err := s.fetch(ctx, ask)
			if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), failure.ErrSlow) {
				err = errors.Join(err, context.Canceled) // The end of one caller's context is not cached for the others.
			}
			return list, err
		})
	})
}

func (s *Store) fetch(ctx context.Context, ask *tagRequest) (*tagList, error) {
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

// digest returns the digest of a tag, at most as old as the list.
func (s *Store) digest(ctx context.Context, ask *tagRequest, list *tagList, tag string) (string, error) {
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
			return "", r.explain(err, "tag "+few.Quote(tag)+", which it lists")
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
