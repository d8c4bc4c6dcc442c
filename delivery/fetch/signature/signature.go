// Package signature verifies who signed commits and tags.
package signature

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Verification is who must have signed what.
type Verification struct {
	// Mode says what: the commit (HEAD, the default), the annotated tag that names it, or both.
	Mode sourcev1.GitVerificationMode
	// Keys are the public keys, from the data of a Secret: each key *.asc holds armored OpenPGP keys, each key *.pub SSH keys
	// as in authorized_keys. Others are ignored.
	Keys map[string][]byte
	// Now returns the time, by which keys expire.
	Now func() time.Time
}

// WantsTag reports whether a tag has to be signed, which then has to be fetched too: see git.Source.WithTag.
func (v Verification) WantsTag() bool {
	return v.Mode == sourcev1.ModeGitTag || v.Mode == sourcev1.ModeGitTagAndHEAD
}

// Signers are the keys of a Verification.
type Signers struct{ keys *publicKeys }

// Read reads the keys. Error: ErrInvalid for keys that cannot be read.
func (v Verification) Read() (Signers, error) {
	keys, err := readKeys(v.Keys, v.Now)
	return Signers{keys}, err
}

// Commit is an ErrSignature that names the commit and the key unless one of the signers signed it. Content is that of the commit's object.
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

// Tag is an ErrSignature that names the tag and the key unless one of the signers signed it, about the commit and under the name. Content is that of
// the tag's object.
func (s Signers) Tag(name, hash, commit string, content []byte) error {
	what := fmt.Sprintf("tag %s (%s)", failure.Printable(name), hash)
	// The signature covers these lines. Without a look at them, a signed tag serves under the name of any other.
	head := fmt.Sprintf("object %s\ntype commit\ntag %s\n", commit, name)
	if !bytes.HasPrefix(content, []byte(head)) {
		return failure.New(failure.ErrSignature, "%s is not about commit %s under this name: make it anew with \"git tag --sign\"", what, commit)
	}
	if err := s.keys.verify(splitTag(content)); err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}

// signed is what was signed, and the signature in PEM or armor, empty when there is none.
type signed struct{ content, signature []byte }

// splitCommit takes the signature out of the head of a commit, where it is a field of several lines. It works on the bytes of the commit,
// because what was signed is all other bytes, as they are.
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
			// Git's other signature, for repositories of SHA-256, is no part of what this one signs.
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

// splitTag cuts off the signature, which is the end of a tag's message.
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
		return failure.New(failure.ErrSignature, "is not signed: sign it with one of the keys in the Secret of verify")
	case bytes.HasPrefix(s.signature, []byte(sshBegins)):
		return k.verifySSH(s)
	case bytes.HasPrefix(s.signature, []byte(openpgpBegins)):
		return k.verifyOpenPGP(s)
	}
	return failure.New(failure.ErrSignature, "has a signature that is neither of OpenPGP nor of SSH: sign it with one of the keys in the Secret of verify")
}
