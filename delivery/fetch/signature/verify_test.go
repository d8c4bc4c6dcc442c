package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

var now = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// signer signs content; key is its public key, as it is in a Secret.
type signer struct {
	sign func(content []byte) []byte
	key  []byte
}

// openPGP is a key of that age, which expires after lifetime; 0 is never.
func openPGP(t *testing.T, age, lifetime time.Duration) signer {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: uint32(lifetime.Seconds()), Time: func() time.Time { return now.Add(-age) }}
	entity, err := openpgp.NewEntity("dev", "", "dev@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	out, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err := errors.Join(err, entity.Serialize(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	public.WriteByte('\n')
	return signer{key: public.Bytes(), sign: func(content []byte) []byte {
		var signature bytes.Buffer
		if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(content), config); err != nil {
			t.Fatal(err)
		}
		return append(signature.Bytes(), '\n')
	}}
}

// sshKey is a key that signs for a namespace.
func sshKey(t *testing.T, namespace string) signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	with, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key: ssh.MarshalAuthorizedKey(with.PublicKey()), sign: func(content []byte) []byte {
		signature, err := sshsig.Sign(bytes.NewReader(content), with, sshsig.HashSHA512, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return sshsig.Armor(signature)
	}}
}

const (
	commitHead = "tree 1\nauthor dev\ncommitter dev\n"
	message    = "\nmessage\n"
)

// signedCommit has the signature where Git puts it: in the head, its lines indented.
func signedCommit(signature []byte) []byte {
	field := "gpgsig " + strings.ReplaceAll(strings.TrimSuffix(string(signature), "\n"), "\n", "\n ") + "\n"
	return []byte(commitHead + field + message)
}

func signersOf(t *testing.T, keys map[string][]byte) Signers {
	t.Helper()
	signers, err := Verification{Keys: keys, Now: func() time.Time { return now }}.Read()
	if err != nil {
		t.Fatal(err)
	}
	return signers
}

func TestACommitIsVerifiedByTheKeysOfTheSecret(t *testing.T) {
	pgp, other, expired := openPGP(t, time.Hour, 0), openPGP(t, time.Hour, 0), openPGP(t, 48*time.Hour, 24*time.Hour)
	git, otherSSH, file := sshKey(t, "git"), sshKey(t, "git"), sshKey(t, "file")
	keys := map[string][]byte{
		"a.asc": joined(expired.key, pgp.key), "b.pub": joined([]byte("# developers\n\n"), git.key, file.key, []byte("# end\n")), "readme.txt": []byte("no key"),
	}
	content := []byte(commitHead + message)
	changed := func(s signer) []byte {
		return bytes.Replace(signedCommit(s.sign(content)), []byte("message"), []byte("massage"), 1)
	}
	twice := bytes.Replace(signedCommit(git.sign(content)), []byte("gpgsig "), []byte("gpgsig x\ngpgsig "), 1)
	// as changes an SSH signature of a trusted key.
	as := func(change func(*sshsig.Signature)) []byte {
		signature, err := sshsig.Unarmor(git.sign(content))
		if err != nil {
			t.Fatal(err)
		}
		change(signature)
		return signedCommit(sshsig.Armor(signature))
	}
	cases := map[string]struct {
		commit []byte
		says   string
	}{
		"SSH with DSA":               {as(func(s *sshsig.Signature) { s.Signature.Format = "ssh-dss" }), "with SHA-1, which can be forged: sign it with a newer OpenSSH"},
		"SSH with MD5":               {as(func(s *sshsig.Signature) { s.HashAlgorithm = "md5" }), "has a signature with a hash that is neither sha256 nor sha512"},
		"OpenPGP":                    {signedCommit(pgp.sign(content)), ""},
		"SSH":                        {signedCommit(git.sign(content)), ""},
		"not signed":                 {content, "commit c0ffee is not signed: sign it with one of the keys in the Secret of verify"},
		"another OpenPGP key":        {signedCommit(other.sign(content)), "which is not in the Secret of verify: add the key if you trust it"},
		"another SSH key":            {signedCommit(otherSSH.sign(content)), "is signed by key SHA256:"},
		"an expired key":             {signedCommit(expired.sign(content)), "which expired on 2026-01-09: sign with a key that is valid"},
		"changed, OpenPGP":           {changed(pgp), "that is not one of this content: it was changed after it was signed"},
		"changed, SSH":               {changed(git), "that is not one of this content: it was changed after it was signed"},
		"signed for another purpose": {signedCommit(file.sign(content)), `that was made for "file" and not for Git`},
		"two signatures":             {twice, "has more than one signature"},
		"another kind":               {signedCommit([]byte("-----BEGIN SIGNED MESSAGE-----\n")), "that is neither of OpenPGP nor of SSH"},
		"a cut OpenPGP signature":    {signedCommit([]byte("-----BEGIN PGP SIGNATURE-----\n\nx\n")), "has a signature that cannot be read: sign it again"},
		"OpenPGP, broken armor":      {signedCommit([]byte("-----BEGIN PGP SIGNATURE-----\n")), "has a signature that cannot be read: sign it again"},
		"OpenPGP, a key":             {signedCommit(bytes.ReplaceAll(pgp.key, []byte("PUBLIC KEY BLOCK"), []byte("SIGNATURE"))), "has a signature that cannot be read: sign it again"},
		"a cut SSH signature":        {signedCommit([]byte("-----BEGIN SSH SIGNATURE-----\nx\n")), "has a signature that cannot be read"},
		"signature in the message":   {append(bytes.Clone(content), git.sign(content)...), "is not signed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := signersOf(t, keys).Commit("c0ffee", tc.commit)
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrSignature, tc.says)
		})
	}
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestAKeyIsValidUntilItExpires(t *testing.T) {
	key := openPGP(t, time.Hour, 2*time.Hour)
	commit := signedCommit(key.sign([]byte(commitHead + message)))
	for after, valid := range map[time.Duration]bool{0: true, time.Hour - time.Second: true, time.Hour + time.Second: false} {
		signers, err := Verification{Keys: map[string][]byte{"a.asc": key.key}, Now: func() time.Time { return now.Add(after) }}.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := signers.Commit("c", commit); (err == nil) != valid {
			t.Errorf("after %s: %v", after, err)
		}
	}
}

func TestATagIsVerifiedForItsCommitAndItsName(t *testing.T) {
	git := sshKey(t, "git")
	signers := signersOf(t, map[string][]byte{"a.pub": git.key})
	tagged := func(head string) []byte {
		content := []byte(head + "tagger dev\n\nrelease\n")
		return append(content, git.sign(content)...)
	}
	const head = "object c0ffee\ntype commit\ntag v1\n"
	valid := tagged(head)
	for name, tc := range map[string]struct {
		content []byte
		says    string
	}{
		"signed":           {valid, ""},
		"of another name":  {tagged("object c0ffee\ntype commit\ntag v10\n"), `tag v1 (t4g) is not about commit c0ffee under this name: make it anew with "git tag --sign"`},
		"of another":       {tagged("object c0ffed\ntype commit\ntag v1\n"), "is not about commit c0ffee under this name"},
		"of a tree":        {tagged("object c0ffee\ntype tree\ntag v1\n"), "is not about commit c0ffee under this name"},
		"not signed":       {[]byte(head + "\nrelease\n"), "tag v1 (t4g) is not signed"},
		"changed":          {bytes.Replace(valid, []byte("release"), []byte("malware"), 1), "it was changed after it was signed"},
		"a line was added": {bytes.Replace(valid, []byte("\nrelease"), []byte("\n\nrelease"), 1), "it was changed after it was signed"},
	} {
		t.Run(name, func(t *testing.T) {
			err := signers.Tag("v1", "t4g", "c0ffee", tc.content)
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrSignature, tc.says)
		})
	}
}

func TestKeysThatCannotBeReadAreNamed(t *testing.T) {
	pgp, git := openPGP(t, time.Hour, 0), sshKey(t, "git")
	for name, tc := range map[string]struct {
		keys map[string][]byte
		says string
	}{
		"no keys": {nil, "the Secret of verify holds no public key: add *.asc (OpenPGP) or *.pub (SSH); an administrator of the cluster may run: kubectl create secret generic people -n team " +
			"--from-file=people.pub=... --dry-run=client -o yaml | kubectl apply -f -"},
		"of other names":      {map[string][]byte{"dev.gpg": pgp.key, "dev": git.key}, "holds no public key"},
		"empty":               {map[string][]byte{"dev.pub": []byte(" \n")}, "holds no public key"},
		"comments":            {map[string][]byte{"dev.pub": []byte("# nobody\n")}, "holds no public key"},
		"an SSH key as .asc":  {map[string][]byte{"dev.asc": git.key}, "dev.asc of the Secret of verify cannot be read"},
		"an OpenPGP as .pub":  {map[string][]byte{"dev.pub": pgp.key}, "dev.pub of the Secret of verify cannot be read"},
		"a damaged OpenPGP":   {map[string][]byte{"dev.asc": pgp.key[:len(pgp.key)/2]}, "dev.asc of the Secret of verify cannot be read"},
		"with options":        {map[string][]byte{"dev.pub": append([]byte(`command="x" `), git.key...)}, "dev.pub of the Secret of verify cannot be read"},
		"a bad second line":   {map[string][]byte{"dev.pub": append(bytes.Clone(git.key), "ssh-ed25519 x\n"...)}, "dev.pub of the Secret of verify cannot be read"},
		"a bad second block":  {map[string][]byte{"dev.asc": append(bytes.Clone(pgp.key), openpgpKeyBegins+"\n"...)}, "dev.asc of the Secret of verify cannot be read"},
		"one of two is wrong": {map[string][]byte{"a.pub": git.key, "b.asc": []byte("x")}, "b.asc of the Secret of verify cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Verification{Keys: tc.keys, Now: time.Now, Secret: "team/people"}.Read()
			sources.WantError(t, err, failure.ErrInvalid, tc.says)
		})
	}
}

func TestTheSignedContentExcludesOnlyTheSignature(t *testing.T) {
	for name, tc := range map[string]struct{ commit, content, signature string }{
		"in the middle":           {"tree 1\ngpgsig a\n b\n c\nencoding x\n\ntext", "tree 1\nencoding x\n\ntext", "a\nb\nc\n"},
		"at the end of the head":  {"tree 1\ngpgsig a\n b\n\ntext", "tree 1\n\ntext", "a\nb\n"},
		"of SHA-256 repositories": {"tree 1\ngpgsig-sha256 x\n y\ngpgsig a\n\ntext", "tree 1\n\ntext", "a\n"},
		"a field of more lines":   {"tree 1\nmergetag x\n gpgsig y\ngpgsig a\n\ntext", "tree 1\nmergetag x\n gpgsig y\n\ntext", "a\n"},
		"a longer name":           {"tree 1\ngpgsigx a\n\ntext", "tree 1\ngpgsigx a\n\ntext", ""},
		"in the message":          {"tree 1\n\ngpgsig a\n", "tree 1\n\ngpgsig a\n", ""},
		"no message":              {"tree 1\ngpgsig a\n\n", "tree 1\n\n", "a\n"},
		"more blank lines":        {"tree 1\n\n\n\ntext\n\n", "tree 1\n\n\n\ntext\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := splitCommit([]byte(tc.commit))
			if diff := cmp.Diff([]string{tc.content, tc.signature}, []string{string(got.content), string(got.signature)}); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestTheLastSignatureOfATagCounts: a message may quote another one.
func TestTheLastSignatureOfATagCounts(t *testing.T) {
	for name, tc := range map[string]struct{ tag, content, signature string }{
		"SSH":             {"tag v1\n\ntext\n" + sshBegins + "\nx\n", "tag v1\n\ntext\n", sshBegins + "\nx\n"},
		"OpenPGP":         {"tag v1\n\ntext\n" + openpgpBegins + "\nx\n", "tag v1\n\ntext\n", openpgpBegins + "\nx\n"},
		"one is quoted":   {"tag v1\n\n" + sshBegins + "\nx\n" + openpgpBegins + "\ny\n", "tag v1\n\n" + sshBegins + "\nx\n", openpgpBegins + "\ny\n"},
		"within a line":   {"tag v1\n\nsee " + sshBegins + "\n", "tag v1\n\nsee " + sshBegins + "\n", ""},
		"nothing but one": {sshBegins, "", sshBegins},
	} {
		t.Run(name, func(t *testing.T) {
			got := splitTag([]byte(tc.tag))
			if diff := cmp.Diff([]string{tc.content, tc.signature}, []string{string(got.content), string(got.signature)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheModeDecidesWhetherATagHasToBeSigned(t *testing.T) {
	for mode, want := range map[sourcev1.GitVerificationMode]bool{"": false, sourcev1.ModeGitHEAD: false, sourcev1.ModeGitTag: true, sourcev1.ModeGitTagAndHEAD: true} {
		if got := (Verification{Mode: mode}).WantsTag(); got != want {
			t.Errorf("%q: %v, want %v", mode, got, want)
		}
	}
}

// TestAnOpenPGPSignatureThatDoesNotCountAnyMore: the key is known, and the signature is one of this content.
func TestAnOpenPGPSignatureThatDoesNotCountAnyMore(t *testing.T) {
	content := []byte(commitHead + message)
	for name, tc := range map[string]struct {
		// lifetime is that of the signature in seconds; 0 is for ever.
		lifetime uint32
		revoked  bool
		want     string
	}{
		"it counts":             {0, false, ""},
		"it has not expired":    {3601, false, ""},
		"it expired":            {3599, false, "commit c has a signature by key %016X that expired: sign it again, and push it"},
		"its key was revoked":   {0, true, "commit c is signed by key %016X, which was revoked: sign with another key, and push it"},
		"both, which is of age": {3599, true, "commit c is signed by key %016X, which was revoked: sign with another key, and push it"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, SigLifetimeSecs: tc.lifetime, Time: func() time.Time { return now.Add(-time.Hour) }}
			entity, err := openpgp.NewEntity("dev", "", "dev@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: config.Time})
			if err != nil {
				t.Fatal(err)
			}
			var signature, public bytes.Buffer
			if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(content), config); err != nil {
				t.Fatal(err)
			}
			if tc.revoked {
				if err := entity.RevokeKey(packet.KeyCompromised, "", config); err != nil {
					t.Fatal(err)
				}
			}
			out, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
			if err := errors.Join(err, entity.Serialize(out), out.Close()); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := signersOf(t, map[string][]byte{"a.asc": public.Bytes()}).Commit("c", signedCommit(append(signature.Bytes(), '\n'))); err != nil {
				got = err.Error()
			}
			want := tc.want
			if want != "" {
				want = fmt.Sprintf(want, entity.PrimaryKey.KeyId)
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
