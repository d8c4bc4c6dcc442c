package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/render"
)

// fetched is what a Git app is made from: a commit, an artifact of a registry, or one of Flux.
type fetched struct {
	// files are the whole of it, without what the app ignores.
	files fs.FS
	// revision names it, for people; of the same digest are the same files, before any is ignored, as far as the app is made from
	// them. Of a commit the digest is "" until that is known.
	revision, digest string
	// reading is what is asked of the files of a commit; nil for an artifact, all of which counts.
	reading *folder.Reading
}

func (r *Reconciler) fetchFiles(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Git
	found, err := r.filesOf(ctx, s, spec)
	if err != nil {
		return err
	}
	if found.files, err = folder.Ignore(found.files, spec.Path, spec.Ignore); err != nil {
		return err
	}
	s.source = found
	s.recognize()
	return nil
}

// recognize finds the revision: a commit about other folders is none for the app. None is told while it is not known whether the
// commit is.
func (s *scope) recognize() {
	s.revision = s.source.revision
	was := &s.app.Status
	if was.ObservedGeneration != s.app.Generation || was.LastAttemptedRevision == "" {
		return
	}
	switch s.source.digest {
	case was.SourceDigest:
		s.revision = was.LastAttemptedRevision
	case "":
		s.revision = ""
	}
}

// built notes what a build that has ended, well or not, read of a commit; one that did not begin read nothing. What was built before
// read then what is noted, which is the same in this commit. Where it cannot be found out, the commit is news.
func (r *Reconciler) built(s *scope, before string) {
	if s.source.reading == nil {
		return
	}
	reads, digest, err := s.source.read(before)
	switch {
	case err != nil:
		s.revision = s.source.revision
	case len(reads) > 0:
		s.source.digest = digest
		s.recognize()
		r.reads.Store(client.ObjectKeyFromObject(s.app), reads)
	}
}

// noted is what was read of a commit, so that it can be found again, also by another process.
func (f *fetched) noted() (string, error) {
	reads, digest, err := f.reading.Done()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(noted{digest, reads})
	return string(text), err
}

// noted are reads and the digest of what was read.
type noted struct {
	Digest string
	Reads  folder.Reads
}

// read is what was read of a commit, now or before.
func (f *fetched) read(before string) (folder.Reads, string, error) {
	if before == "" {
		return f.reading.Done()
	}
	var was noted
	err := json.Unmarshal([]byte(before), &was)
	return was.Reads, was.Digest, err
}

// readsAs reports whether what was read once is the same in this commit.
func (f *fetched) readsAs(text string) bool {
	var was noted
	if json.Unmarshal([]byte(text), &was) != nil {
		return false
	}
	digest, err := f.reading.DigestOf(was.Reads)
	return err == nil && digest == was.Digest
}

func (r *Reconciler) filesOf(ctx context.Context, s *scope, spec *v1alpha1.GitSource) (fetched, error) {
	switch {
	case spec.OCI != nil:
		return r.pull(ctx, s, spec.OCI)
	case spec.SourceRef != nil:
		return r.fromFlux(ctx, s, spec.SourceRef)
	}
	who, err := r.verification(ctx, s, spec.Verify)
	if err != nil {
		return fetched{}, err
	}
	commit, err := r.commit(ctx, s, git.Source{URL: spec.URL, Ref: spec.Ref, Tenant: s.owner.Tenant, WithTag: who.WantsTag()}, spec.SecretRef)
	if err == nil && spec.Verify != nil {
		err = commit.Verify(who)
	}
	if err != nil {
		return fetched{}, err
	}
	found, err := s.ofCommit(commit)
	found.reading = commit.Root.Reading()
	found.files = found.reading
	return found, err
}

// ofCommit is what is known of a commit before it is read: whether what was read last is the same there.
func (s *scope) ofCommit(commit git.Commit) (found fetched, err error) {
	found.revision = commit.Revision
	if s.reads != nil {
		found.digest, err = commit.Root.DigestOf(s.reads)
	}
	return found, err
}

// verification reads the keys that may sign.
func (r *Reconciler) verification(ctx context.Context, s *scope, spec *v1alpha1.GitVerification) (signature.Verification, error) {
	if spec == nil {
		return signature.Verification{}, nil
	}
	ref := spec.SecretRef.Name
	keys, err := r.data(ctx, s, "Secret", ref)
	if errors.Is(err, render.ErrMissing) {
		return signature.Verification{}, fmt.Errorf("secret %s/%s of verify.secretRef does not exist: create it", s.app.Namespace, ref)
	}
	return signature.Verification{Mode: spec.Mode, Keys: keys, Now: r.Clock.Now}, err
}

func (r *Reconciler) commit(ctx context.Context, s *scope, from git.Source, secret *v1alpha1.LocalSecretReference) (git.Commit, error) {
	from.Ref = from.Ref.DeepCopy() // The fetch goes on while the app is written.
	return shared(ctx, r, s, asked[git.Commit]{
		of: r.Commits, what: fmt.Sprintf("git %q %+q %t", from.URL, from.Ref, from.WithTag), host: transport.HostOf(from.URL), secret: secret,
		fetch: func(ctx context.Context, auth transport.Auth) (git.Commit, error) {
			from := from
			from.Auth = auth
			return r.Git.Fetch(ctx, from)
		},
	})
}

func (r *Reconciler) pull(ctx context.Context, s *scope, spec *v1alpha1.OCISource) (fetched, error) {
	from := artifact.OCI{URL: spec.URL, Digest: spec.Digest, SemVer: spec.SemVer, Tag: spec.Tag, Insecure: spec.Insecure, Tenant: s.owner.Tenant}
	found := func() (artifact.Artifact, error) {
		return shared(ctx, r, s, asked[artifact.Artifact]{
			of: r.Pulled, what: fmt.Sprintf("oci %q %t", []string{spec.URL, spec.Digest, spec.SemVer, spec.Tag}, spec.Insecure), secret: spec.SecretRef,
			host: transport.HostOf(spec.URL),
			fetch: func(ctx context.Context, auth transport.Auth) (artifact.Artifact, error) {
				from := from
				from.Auth = auth
				return r.Artifacts.Fetch(ctx, from)
			},
		})
	}
	return r.unpacked(found, func() { s.memory.asked = cache.Question{Request: "swept"} })
}

// asked is what a source is asked for: what, at which host, as whom, and how.
type asked[T any] struct {
	of         *cache.Answers[T]
	what, host string
	secret     *v1alpha1.LocalSecretReference
	// fetch must not use the scope.
	fetch func(context.Context, transport.Auth) (T, error)
}

// shared returns what the source last answered any app, or asks it: when the answer is older than the app's interval, or the
// app's spec or reconcile request is new. Apps of one tenant share answers that were got with the same version of the same
// Secret. Tenants share none: the timeout and the pace of one would decide what the source seems to say to the others.
func shared[T any](ctx context.Context, r *Reconciler, s *scope, a asked[T]) (T, error) {
	var none T
	ask, err := r.ask(ctx, s, a.host)
	if err != nil {
		return none, err
	}
	a.what += " of " + s.owner.Tenant
	if a.secret != nil {
		version, err := r.Version(ctx, s.app.Namespace, "Secret", a.secret.Name)
		if err != nil {
			return none, err
		}
		a.what += fmt.Sprintf(" as %q", []string{s.app.Namespace, a.secret.Name, version})
	}
	s.memory.follows = a.what
	r.refer(s)
	ask.Key, ask.Version, ask.Cause = a.what, "", s.causeOf(ask.Question)
	answer, err := lastOf(r, s, a.of, ask, func() (cache.Fetcher[T], error) {
		auth, err := transport.ReadAuth(ctx, r.secrets(s), s.app.Namespace, a.secret)
		return func(ctx context.Context) (T, error) { return a.fetch(ctx, auth) }, err
	})
	if !s.stale.waits && !errors.Is(err, failure.ErrBusy) && !errors.As(err, new(*cache.Unanswered)) {
		s.memory.asked = ask.Question
		s.memory.cause = s.commonCause(ask.Question)
	}
	return answer, err
}

// causeOf names why the source is asked anew: the app asks what it did not ask before; "" where it does not. The many apps that a
// commit declares have one cause. Whoever comes with it a second time has one of its own: somebody changed the app by hand.
func (s *scope) causeOf(q cache.Question) string {
	if !s.isNew(q) {
		return ""
	}
	cause := s.commonCause(q)
	if s.app.Annotations[v1alpha1.RevisionAnnotation] == "" || s.memory.cause == cause {
		return fmt.Sprintf("%s generation %d of %s", cause, s.app.Generation, s.app.UID)
	}
	return cause
}

// commonCause names what the apps of one commit have in common that ask the same.
func (s *scope) commonCause(q cache.Question) string {
	return s.app.Annotations[v1alpha1.RevisionAnnotation] + " " + q.Request
}

// isNew reports whether the app asks something that it did not before. After a restart its status says what was asked.
func (s *scope) isNew(q cache.Question) bool {
	if (s.memory.asked != cache.Question{}) {
		return s.memory.asked != q
	}
	request, _ := meta.ReconcileAnnotationValue(s.app.Annotations)
	return s.app.Status.ObservedGeneration != s.app.Generation || s.app.Status.LastHandledReconcileAt != request
}

// refer takes down what the app refers to, and which source it follows.
func (r *Reconciler) refer(s *scope) {
	refs := referencesOf(s.app)
	if s.memory.follows != "" {
		refs = append(refs, reference{kind: sourceKind, name: s.memory.follows})
	}
	r.unfollow(r.references.set(client.ObjectKeyFromObject(s.app), refs))
}

// unfollow drops what is remembered of sources that no app follows any more.
func (r *Reconciler) unfollow(unused []reference) {
	for _, ref := range unused {
		if ref.kind == sourceKind {
			r.Commits.Forget(ref.name)
			r.Pulled.Forget(ref.name)
		}
	}
}

// wakeOnNews wakes the apps of a source when one of them found that it changed; of a commit, those that would read
// something else there. The others take it up when they look next.
func (r *Reconciler) wakeOnNews(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.queue.Store(&queue)
	r.wakes(r.Wake)
	r.Commits.Changed = func(from string, was, is git.Commit) {
		for _, app := range r.references.users(reference{kind: sourceKind, name: from}) {
			if was.Hash != is.Hash && !r.readsSame(app, was, is) {
				queue.Add(reconcile.Request{NamespacedName: app})
			}
		}
	}
	r.Pulled.Changed = func(from string, was, is artifact.Artifact) {
		for _, app := range r.references.users(reference{kind: sourceKind, name: from}) {
			if was.Digest != is.Digest {
				queue.Add(reconcile.Request{NamespacedName: app})
			}
		}
	}
}

// Wake has an app looked at.
func (r *Reconciler) Wake(app types.NamespacedName) {
	if queue := r.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: app})
	}
}

// readsSame reports whether a commit is about nothing that the app is made from, as far as that is sure: what read the same
// before ends in the same build.
func (r *Reconciler) readsSame(app types.NamespacedName, was, is git.Commit) bool {
	reads, known := r.reads.Load(app)
	if !known {
		return false
	}
	before, err := was.Root.DigestOf(reads.(folder.Reads))
	after, also := is.Root.DigestOf(reads.(folder.Reads))
	return err == nil && also == nil && before == after
}
