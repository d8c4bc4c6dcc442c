package git

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/few"
)

// Verify compares the signatures of the commit, and of the tag by which it was fetched, with the keys. It makes no request. Errors:
// failure.ErrSignature, which names commit or tag and key; ErrInvalid for keys that cannot be read.
func (c Commit) Verify(v signature.Verification) error {
	signers, err := v.Read()
	if err != nil {
		return err
	}
	if v.WantsTag() {
		if err := c.verifyTag(signers); err != nil {
			return err
		}
		if v.Mode == sourcev1.ModeGitTag {
			return nil
		}
	}
	content, err := c.from.read(plumbing.CommitObject, plumbing.NewHash(c.Hash))
	if err != nil {
		return err
	}
	return signers.Commit(c.Hash, content)
}

func (c Commit) verifyTag(signers signature.Signers) error {
	switch {
	case c.ref.name == "":
		return failure.New(failure.ErrInvalid, "verify.mode requires a signed tag, and ref names none: set ref.tag or ref.semver in Git")
	case c.ref.tag.IsZero():
		return failure.New(failure.ErrSignature, "tag %s is a lightweight tag, which cannot be signed: make it with \"git tag --sign\", and push it", few.Quote(c.ref.name))
	}
	content, err := c.from.read(plumbing.TagObject, c.ref.tag)
	if err != nil {
		return err
	}
	return signers.Tag(c.ref.name, c.ref.tag.String(), c.Hash, content)
}
