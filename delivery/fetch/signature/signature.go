// Package signature verifies who signed commits and tags.
package signature

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// Verification says what must be signed, and by whom.
type Verification struct {
	// Mode says what must be signed: the commit (HEAD, the default), the annotated tag that names the commit, or both.
	Mode sourcev1.GitVerificationMode
	// Keys are the public keys, as the data of a Secret: each key *.asc contains armored OpenPGP keys, each key *.pub SSH keys in the
	// format of authorized_keys. Other keys are ignored.
	Keys map[string][]byte
	// Now returns the time, for the expiry of keys.
	Now func() time.Time
	// Secret is the name of the Secret with the keys, as "namespace/name", for messages.
	Secret string
}

// WantsTag reports whether a tag must be signed. Then the tag must also be fetched, see git.Source.WithTag.
func (v Verification) WantsTag() bool {
	return v.Mode == sourcev1.ModeGitTag || v.Mode == sourcev1.ModeGitTagAndHEAD
}

// Signers are the parsed keys of a Verification.
type Signers struct{ keys *publicKeys }

// Read parses the keys. The error is ErrInvalid for invalid keys.
func (v Verification) Read() (Signers, error) {
	keys, err := v.readKeys()
	return Signers{keys}, err
}

// Commit returns an ErrSignature, which names the commit and the key, unless one of the signers signed the commit. content is that of the
// commit object.
func (s Signers) Commit(hash string, content []byte) error {
	signed, err := splitCommit(content)
	if err == nil {
		err = s.keys.verify(signed)
	}
	if err != nil {
		return fmt.Errorf("commit %s %w", hash, err)
	}
	return nil
}

// Tag returns an ErrSignature, which names the tag and the key, unless one of the signers signed the tag with this name for this commit.
// content is that of the tag object.
func (s Signers) Tag(name, hash, commit string, content []byte) error {
	what := fmt.Sprintf("tag %s (%s)", few.Quote(name), hash)
	// The signature covers these lines. If they were not checked, a signed tag could be served under the name of any other.
	head := fmt.Sprintf("object %s\ntype commit\ntag %s\n", commit, name)
	if !bytes.HasPrefix(content, []byte(head)) {
		return failure.New(failure.ErrSignature, "%s is not about commit %s under this name: make it anew with \"git tag --sign\", and push it", what, commit)
	}
	if err := s.keys.verify(splitTag(content)); err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}

// signed is the signed content, and the signature in PEM or armor; the signature is empty if there is none.
type signed struct{ content, signature []byte }

// splitCommit separates the signature from a commit, in whose header it is a field of several lines. It works on the bytes of the commit,
// because all other bytes are signed as they are.
func splitCommit(commit []byte) (signed, error) {
	var s signed
	head, _, _ := bytes.Cut(commit, []byte("\n\n"))
	within, times := "", 0
	for line := range bytes.Lines(append(bytes.Clone(head), '\n')) {
		if line[0] != ' ' {
			name, _, _ := strings.Cut(string(line[:min(len(line), 16)]), " ")
			within = name
			if name == "gpgsig" {
				times++
				line = line[len("gpgsig"):]
			}
		}
		switch within {
		case "gpgsig":
			s.signature = append(s.signature, bytes.TrimPrefix(line, []byte(" "))...)
		case "gpgsig-sha256":
			// Git's signature for SHA-256 repositories is not part of what this signature covers.
		default:
			s.content = append(s.content, line...)
		}
	}
	if times > 1 {
		return signed{}, failure.New(failure.ErrSignature, "has more than one signature")
	}
	s.content = append(s.content, commit[min(len(head)+1, len(commit)):]...)
	return s, nil
}

// splitTag separates the signature from a tag; it is at the end of the tag's message.
func splitTag(tag []byte) signed {
	at, end := -1, 0
	for line := range bytes.Lines(tag) {
		if bytes.HasPrefix(line, []byte(openpgpBegins)) || bytes.HasPrefix(line, []byte(sshBegins)) {
			at = end
		}
		end += len(line)
	}
	if at < 0 {
		return signed{content: tag}
	}
	return signed{content: tag[:at], signature: tag[at:]}
}

const (
	openpgpBegins = "-----BEGIN PGP SIGNATURE-----"
	sshBegins     = "-----BEGIN SSH SIGNATURE-----"
)

func (k *publicKeys) verify(s signed) error {
	switch {
	case len(s.signature) == 0:
		return failure.New(failure.ErrSignature, "is not signed: sign it with one of the keys in the Secret of verify, and push it")
	case bytes.HasPrefix(s.signature, []byte(sshBegins)):
		return k.verifySSH(s)
	case bytes.HasPrefix(s.signature, []byte(openpgpBegins)):
		return k.verifyOpenPGP(s)
	}
	return failure.New(failure.ErrSignature, "has a signature that is neither of OpenPGP nor of SSH: sign it with one of the keys in the Secret of verify, and push it")
}
