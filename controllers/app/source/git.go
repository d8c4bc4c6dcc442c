package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/render"
)

func (f *Fetcher) fetchFiles(ctx context.Context, p *pass) error {
	spec := p.App.Spec.Git
	files, err := f.filesOf(ctx, p, spec)
	if err != nil {
		return err
	}
	if files.FS, err = folder.Ignore(files.FS, spec.Path, spec.Ignore); err != nil {
		return err
	}
	p.found.Files = files
	p.found.recognize(p.App)
	return nil
}

func (f *Fetcher) filesOf(ctx context.Context, p *pass, spec *v1alpha1.GitSource) (Files, error) {
	switch {
	case spec.OCI != nil:
		return f.pull(ctx, p, spec.OCI)
	case spec.SourceRef != nil:
		return f.fromFlux(ctx, p, spec.SourceRef)
	}
	who, err := f.verification(ctx, p, spec.Verify)
	if err != nil {
		return Files{}, err
	}
	commit, err := f.commit(ctx, p, git.Source{URL: spec.URL, Ref: spec.Ref, Tenant: p.Owner.Tenant, WithTag: who.WantsTag()}, spec.SecretRef)
	if err == nil && spec.Verify != nil {
		err = commit.Verify(who)
	}
	if err != nil {
		return Files{}, err
	}
	files, err := p.found.ofCommit(commit)
	files.reading = commit.Root.Reading()
	files.FS = files.reading
	return files, err
}

// recognize sets the revision. If a new commit changes no file that the App uses, the revision stays the last one. While that is not known,
// the revision is "".
func (f *Found) recognize(app *v1alpha1.App) {
	f.Revision = f.Files.Revision
	before := &app.Status
	if before.ObservedGeneration != app.Generation || before.LastAttemptedRevision == "" {
		return
	}
	switch f.Files.Digest {
	case before.SourceDigest:
		f.Revision = before.LastAttemptedRevision
	case "":
		f.Revision = ""
	}
}

// ofCommit returns the files of a commit, with the digest of the files that the last build read; without a digest if these are not known.
func (f *Found) ofCommit(commit git.Commit) (files Files, err error) {
	files.Revision, files.Author = commit.Revision, commit.Author
	if f.reads != nil {
		files.Digest, err = commit.Root.DigestOf(f.reads)
	}
	return files, err
}

// Built records which files of a commit a build read. The build has ended, with or without an error; one that did not begin read nothing.
// before is the text of Noted if the result comes from an earlier build that read the same files; "" if the build just ran. If the files
// cannot be found out, the commit counts as a new revision.
func (f *Fetcher) Built(s *subject.Subject, found *Found, before string) {
	if found.Files.reading == nil {
		return
	}
	reads, digest, err := found.Files.read(before)
	switch {
	case err != nil:
		found.Revision = found.Files.Revision
	case len(reads) > 0:
		found.Files.Digest = digest
		found.recognize(s.App)
		f.reads.Store(s.Key(), reads)
	}
}

// noted are the paths that a build read, and the digest of their contents.
type noted struct {
	Digest string
	Reads  folder.Reads
}

// FromCommit reports whether the files are of a commit, so that reads are recorded.
func (f *Files) FromCommit() bool { return f.reading != nil }

// Noted encodes which files of the commit were read, so that ReadsAs can compare them, also in another process.
func (f *Files) Noted() (string, error) {
	reads, digest, err := f.reading.Done()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(noted{digest, reads})
	return string(text), err
}

// ReadsAs reports whether the files in a text of Noted are the same in this commit.
func (f *Files) ReadsAs(text string) bool {
	var was noted
	if json.Unmarshal([]byte(text), &was) != nil {
		return false
	}
	digest, err := f.reading.DigestOf(was.Reads)
	return err == nil && digest == was.Digest
}

// read returns which files a build read, and their digest: the build that just ran or, if before is set, the earlier one.
func (f *Files) read(before string) (folder.Reads, string, error) {
	if before == "" {
		return f.reading.Done()
	}
	var was noted
	err := json.Unmarshal([]byte(before), &was)
	return was.Reads, was.Digest, err
}

// verification reads the public keys whose signatures are accepted.
func (f *Fetcher) verification(ctx context.Context, p *pass, spec *v1alpha1.GitVerification) (signature.Verification, error) {
	if spec == nil {
		return signature.Verification{}, nil
	}
	keys, err := f.Inputs.Data(ctx, p.Subject, inputs.Secret, spec.SecretRef.Name)
	if errors.Is(err, render.ErrMissing) {
		return signature.Verification{}, missingSecret(p.App.Namespace, spec.SecretRef.Name, "verify.secretRef")
	}
	return signature.Verification{Mode: spec.Mode, Keys: keys, Now: p.Now, Secret: p.App.Namespace + "/" + spec.SecretRef.Name}, err
}

func (f *Fetcher) commit(ctx context.Context, p *pass, from git.Source, secret *v1alpha1.LocalSecretReference) (git.Commit, error) {
	from.Ref = p.pinned(from.Ref, from.WithTag).DeepCopy() // The fetch may still use Ref after this Reconcile changed the App.
	commit, err := shared(ctx, f, p, query[git.Commit]{
		of: f.Answers.Commits, what: fmt.Sprintf("git %q %+q %t", from.URL, from.Ref, from.WithTag), host: transport.HostOf(from.URL), secret: nameOf(secret),
		prepare: func() (cache.Fetcher[git.Commit], error) {
			var err error
			from := from
			from.Auth, err = transport.ReadAuth(ctx, f.Inputs.Secrets(p.Subject), p.App.Namespace, secret)
			return func(ctx context.Context) (git.Commit, error) { return f.Git.Fetch(ctx, from) }, err
		},
	})
	if p.pin != "" && !from.WithTag {
		commit.Revision = p.pin // As the ref named it.
	}
	return commit, err
}

// readsSame reports whether a commit changes none of the files that the App's last build read. It returns false if these files are not
// known.
func (f *Fetcher) readsSame(app types.NamespacedName, was, is git.Commit) bool {
	reads, known := f.reads.Load(app)
	if !known {
		return false
	}
	before, err := was.Root.DigestOf(reads.(folder.Reads))
	after, also := is.Root.DigestOf(reads.(folder.Reads))
	return err == nil && also == nil && before == after
}

// missingSecret says which Secret does not exist, and which field names it.
func missingSecret(namespace, name, field string) error {
	return fmt.Errorf("secret %s/%s of %s does not exist: create it; %s", namespace, name, field, command.CreateSecret(namespace, name, "people.pub"))
}
