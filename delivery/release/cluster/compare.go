package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// Ref names an object of a release. The namespace of a cluster-scoped object is empty.
type Ref struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// Difference is an object that differs from the deployed revision.
type Difference struct {
	// Object as "Kind/name".
	Object string
	// Missing: the object does not exist.
	Missing bool
	// Fields are the fields that differ, sorted by path, at most 20; none if the object is missing.
	Fields []differ.Change
	// Applied is the result of the correction; nil if the object was not corrected.
	Applied *Applied
}

// Comparison says how objects are compared with the live ones.
type Comparison struct {
	// Ignore are the fields that others may change.
	Ignore differ.Rules
	// Correct corrects objects that differ.
	Correct bool
	// Sensitive strings are masked in the differences.
	Sensitive []string
}

// Differences compares the objects with the live ones. It may return differences together with an error, which is about the objects that
// could not be compared or corrected.
func (c *Client) Differences(ctx context.Context, want []*unstructured.Unstructured, how Comparison) ([]Difference, error) {
	l := look{client: c, ignore: how.Ignore, correct: how.Correct, sensitive: how.Sensitive}
	return l.all(ctx, want)
}

// look compares objects with the live ones.
type look struct {
	client    *Client
	ignore    differ.Rules
	correct   bool
	sensitive []string
}

func (l *look) all(ctx context.Context, want []*unstructured.Unstructured) ([]Difference, error) {
	found := make([]*Difference, len(want))
	errs := make([]error, len(want))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, u := range want {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer fault.Recovered("comparing "+u.GetKind()+"/"+u.GetName(), &errs[i])
			if errs[i] = ctx.Err(); errs[i] == nil {
				found[i], errs[i] = l.one(u)
			}
		})
	}
	all.Wait()
	var out []Difference
	for _, d := range found {
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, fault.Join(errs...)
}

// one compares one object. If the object could not be corrected, it returns both a difference and an error.
func (l *look) one(u *unstructured.Unstructured) (*Difference, error) {
	want := l.client.claimed(u)
	info, err := l.client.info(want)
	if err != nil {
		return nil, err
	}
	ch := &change{client: l.client, info: info, want: want, before: want, phase: "upgrade"}
	for range maxMoves {
		live, err := ch.get()
		if apierrors.IsNotFound(err) {
			return l.missing(ch)
		}
		if err != nil {
			return nil, named(info, err)
		}
		d, err := l.compare(ch, want, live)
		if !errors.Is(err, metadata.ErrChanging) {
			return d, named(info, err)
		}
	}
	return nil, named(info, metadata.Changing("compared"))
}

// maxMoves limits how often an object is compared again because someone else wrote it meanwhile.
const maxMoves = 5

// compare compares an object with the live one, or fails with metadata.ErrChanging.
func (l *look) compare(ch *change, want, live *unstructured.Unstructured) (*Difference, error) {
	if app := l.client.anotherApp(live); app != "" {
		return nil, &foreign{live: live, app: app}
	}
	if l.client.Release.shares(live.GetNamespace()) && !l.client.Release.ownsShared(live) {
		return nil, nil // It belongs to the administrators, who replaced the release's object.
	}
	masks, all := l.ignore.Spared(live)
	if all || terminating(live) {
		return nil, nil
	}
	ch.want = differ.Yielding(want, live, append(masks, scaled(live)...))
	p, err := threeWay(ch.want, ch.want, live)
	if err != nil || p.empty() {
		return nil, err
	}
	fields, err := l.preview(ch, p, live)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	d := &Difference{Object: nameOf(ch.info), Fields: fields}
	if !l.correct {
		return d, nil
	}
	return d, l.send(ch, p, want, d)
}

func (l *look) missing(ch *change) (*Difference, error) {
	if _, all := l.ignore.Spared(ch.want); all {
		return nil, nil
	}
	d := &Difference{Object: nameOf(ch.info), Missing: true}
	if !l.correct {
		return d, nil
	}
	if err := ch.create(); err != nil {
		return d, named(ch.info, err)
	}
	done := AppliedAs(ch.want, ch.live)
	d.Applied = &done
	return d, nil
}

// preview sends the patch as a dry run, and returns what it would change. A dry run answers with the version from which it started: if that
// is not the version that was read, the difference may come from someone else's write.
func (l *look) preview(ch *change, p patch, live *unstructured.Unstructured) ([]differ.Change, error) {
	o, err := helper(ch.info).DryRun(true).Patch(ch.info.Namespace, ch.info.Name, p.kind, p.data, nil)
	if err != nil {
		return nil, fmt.Errorf("asking what would change: %w", err)
	}
	then, err := unstructuredOf(o)
	if err != nil {
		return nil, err
	}
	if then.GetResourceVersion() != live.GetResourceVersion() {
		return nil, metadata.Changing("compared")
	}
	return differ.Compare(then, live, mask.Of(l.sensitive)), nil
}

func (l *look) send(ch *change, p patch, want *unstructured.Unstructured, d *Difference) error {
	o, err := helper(ch.info).Patch(ch.info.Namespace, ch.info.Name, p.kind, p.data, nil)
	if err != nil {
		return err
	}
	live, err := unstructuredOf(o)
	if err != nil {
		return err
	}
	done := AppliedAs(want, live)
	d.Applied = &done
	return nil
}
