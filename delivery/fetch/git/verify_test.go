package git

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// signing is a signer, and the file with its public key.
type signing struct {
	sign func(content []byte) string
	file string
	key  []byte
}

func openpgpKey(t *testing.T, lifetime uint32) signing {
	t.Helper()
	config := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: lifetime, Time: func() time.Time { return time.Now().Add(-time.Hour) }}
	who, err := openpgp.NewEntity("dev", "", "dev@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	out, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err := errors.Join(err, who.Serialize(out), out.Close()); err != nil {
		t.Fatal(err)
	}
	return signing{file: "dev.asc", key: public.Bytes(), sign: func(content []byte) string {
		var signature bytes.Buffer
		if err := openpgp.ArmoredDetachSign(&signature, who, bytes.NewReader(content), config); err != nil {
			t.Fatal(err)
		}
		return signature.String() + "\n"
	}}
}

func sshKey(t *testing.T, private any, namespace, algorithm string) signing {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signing{file: "dev.pub", key: ssh.MarshalAuthorizedKey(signer.PublicKey()), sign: func(content []byte) string {
		hash := sha512.Sum512(content)
		about := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, HashAlgorithm, Hash string }{namespace, "", "sha512", string(hash[:])})...)
		signature, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, about, algorithm)
		if err != nil {
			t.Fatal(err)
		}
		blob := append([]byte("SSHSIG"), ssh.Marshal(struct {
			Version                                                  uint32
			PublicKey, Namespace, Reserved, HashAlgorithm, Signature string
		}{1, string(signer.PublicKey().Marshal()), namespace, "", "sha512", string(ssh.Marshal(signature))})...)
		return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}))
	}}
}

func ed25519Key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// hashObject writes an object without checking it.
func hashObject(r *sources.GitRepo, kind string, content []byte) string {
	r.T.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "-w", "--stdin")
	cmd.Dir, cmd.Stdin = r.Work, bytes.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		r.T.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// commitAs makes a commit, signed if sign is not nil, tampers with it afterwards, and points main to it.
func commitAs(r *sources.GitRepo, sign func([]byte) string, tamper func(string) string) string {
	r.T.Helper()
	r.Write("a", fmt.Sprint(time.Now().UnixNano()))
	r.Git("add", "--all")
	tree := r.Git("write-tree")
	head := fmt.Sprintf("tree %s\nauthor t <t@example.com> 1700000000 +0000\ncommitter t <t@example.com> 1700000000 +0000\n", tree)
	const message = "\na subject\n\n gpgsig in a body\n"
	content := head + message
	if sign != nil {
		signature := strings.TrimSuffix(sign([]byte(content)), "\n")
		content = head + "gpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n" + message
	}
	if tamper != nil {
		content = tamper(content)
	}
	hash := hashObject(r, "commit", []byte(content))
	r.Git("update-ref", "refs/heads/main", hash)
	return hash
}

func tagAs(r *sources.GitRepo, name, says, commit string, sign func([]byte) string) {
	r.T.Helper()
	content := fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger t <t@example.com> 1700000000 +0000\n\nrelease\n", commit, r.Git("cat-file", "-t", commit), says)
	if sign != nil {
		content += sign([]byte(content))
	}
	r.Git("update-ref", "refs/tags/"+name, hashObject(r, "tag", []byte(content)))
}

func TestOnlyCommitsWithASignatureOfAKeyAreVerified(t *testing.T) {
	mine, other, old := openpgpKey(t, 0), openpgpKey(t, 0), openpgpKey(t, 7200)
	private := ed25519Key(t)
	theirs, otherSSH := sshKey(t, private, "git", ssh.KeyAlgoED25519), sshKey(t, ed25519Key(t), "git", ssh.KeyAlgoED25519)
	foreign := sshKey(t, private, "file", ssh.KeyAlgoED25519)
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	strong, weak := sshKey(t, large, "git", ssh.KeyAlgoRSASHA512), sshKey(t, large, "git", ssh.KeyAlgoRSA)
	change := func(s string) string { return strings.Replace(s, "a subject", "another subject", 1) }
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	for name, tc := range map[string]struct {
		sign   *signing
		tamper func(string) string
		keys   []signing
		now    func() time.Time
		says   string
		kind   error
	}{
		"openpgp":              {sign: &mine, keys: []signing{other, mine}},
		"ssh":                  {sign: &theirs, keys: []signing{otherSSH, theirs, mine}},
		"rsa":                  {sign: &strong, keys: []signing{strong}},
		"unsigned":             {keys: []signing{mine}, says: "is not signed", kind: failure.ErrSignature},
		"unknown openpgp":      {sign: &other, keys: []signing{mine, theirs}, says: "not in the Secret", kind: failure.ErrSignature},
		"unknown ssh":          {sign: &otherSSH, keys: []signing{mine, theirs}, says: "SHA256:", kind: failure.ErrSignature},
		"changed, openpgp":     {sign: &mine, tamper: change, keys: []signing{mine}, says: "changed after it was signed", kind: failure.ErrSignature},
		"changed, ssh":         {sign: &theirs, tamper: change, keys: []signing{theirs}, says: "changed after it was signed", kind: failure.ErrSignature},
		"not yet expired":      {sign: &old, keys: []signing{old}},
		"expired":              {sign: &old, keys: []signing{old}, now: later, says: "expired on 20", kind: failure.ErrSignature},
		"for something else":   {sign: &foreign, keys: []signing{theirs}, says: `made for "file"`, kind: failure.ErrSignature},
		"sha-1":                {sign: &weak, keys: []signing{strong}, says: "SHA-1", kind: failure.ErrSignature},
		"garbage":              {sign: &signing{sign: func([]byte) string { return "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n" }}, keys: []signing{mine}, says: "cannot be read", kind: failure.ErrSignature},
		"garbage, ssh":         {sign: &signing{sign: func([]byte) string { return "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n" }}, keys: []signing{mine}, says: "cannot be read", kind: failure.ErrSignature},
		"neither":              {sign: &signing{sign: func([]byte) string { return "-----BEGIN CERTIFICATE-----\n" }}, keys: []signing{mine}, says: "neither", kind: failure.ErrSignature},
		"two signatures":       {sign: &mine, tamper: func(s string) string { return strings.Replace(s, "gpgsig ", "gpgsig x\ngpgsig ", 1) }, keys: []signing{mine}, says: "more than one", kind: failure.ErrSignature},
		"signature in message": {tamper: func(s string) string { return s + "\ngpgsig " + mine.sign([]byte(s)) }, keys: []signing{mine}, says: "is not signed", kind: failure.ErrSignature},
		"no keys":              {sign: &mine, says: "no public key", kind: failure.ErrInvalid},
		"not a key":            {sign: &mine, keys: []signing{{file: "x.pub", key: []byte("hello")}}, says: "x.pub", kind: failure.ErrInvalid},
		"not a key either":     {sign: &mine, keys: []signing{{file: "x.asc", key: []byte("hello")}}, says: "x.asc", kind: failure.ErrInvalid},
		"a key with options":   {sign: &theirs, keys: []signing{{file: "x.pub", key: append([]byte("cert-authority "), theirs.key...)}}, says: "without options", kind: failure.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := sources.NewGitRepo(t)
			var sign func([]byte) string
			if tc.sign != nil {
				sign = tc.sign.sign
			}
			hash := commitAs(repo, sign, tc.tamper)
			repo.PushAll()
			keys := map[string][]byte{"password": []byte("ignored")}
			for i, k := range tc.keys {
				keys[fmt.Sprintf("%d-%s", i, k.file)] = k.key
			}
			if tc.now == nil {
				tc.now = time.Now
			}
			commit := fetchOK(t, NewStore(t.TempDir(), loopback), Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()})
			err := commit.Verify(signature.Verification{Keys: keys, Now: tc.now})
			if tc.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, failure.ErrSignature) && !strings.Contains(err.Error(), hash) {
				t.Errorf("%q does not name commit %s", err, hash)
			}
		})
	}
}

// TestGitAgreesWithSignatures verifies the signatures of the tests above with git itself.
func TestGitAgreesWithSignatures(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	who := sshKey(t, ed25519Key(t), "git", ssh.KeyAlgoED25519)
	repo := sources.NewGitRepo(t)
	hash := commitAs(repo, who.sign, nil)
	repo.Write("allowed", "* "+string(who.key))
	repo.Git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile=allowed", "verify-commit", hash)
}

func TestOnlyTagsWithASignatureOfAKeyAreVerified(t *testing.T) {
	mine, theirs := openpgpKey(t, 0), sshKey(t, ed25519Key(t), "git", ssh.KeyAlgoED25519)
	repo := sources.NewGitRepo(t)
	unsigned := commitAs(repo, nil, nil)
	tagAs(repo, "v1.0.0", "v1.0.0", unsigned, mine.sign)
	tagAs(repo, "v1.1.0", "v1.1.0", unsigned, nil)
	repo.Git("update-ref", "refs/tags/v1.2.0", unsigned)
	tagAs(repo, "v1.3.0", "v1.0.0", unsigned, mine.sign)
	both := commitAs(repo, theirs.sign, nil)
	tagAs(repo, "v2.0.0", "v2.0.0", both, mine.sign)
	tagAs(repo, "v2.1.0", "v2.1.0", repo.Git("rev-parse", "v2.0.0"), mine.sign)
	repo.PushAll()
	server := sources.ServeGit(t, repo, httptest.NewServer)
	keys := map[string][]byte{mine.file: mine.key, theirs.file: theirs.key}
	for name, tc := range map[string]struct {
		ref  sourcev1.GitRepositoryRef
		mode sourcev1.GitVerificationMode
		says string
		kind error
	}{
		"signed tag":         {ref: sourcev1.GitRepositoryRef{Tag: "v1.0.0"}, mode: sourcev1.ModeGitTag},
		"by range":           {ref: sourcev1.GitRepositoryRef{SemVer: "<1.1.0"}, mode: sourcev1.ModeGitTag},
		"tag and commit":     {ref: sourcev1.GitRepositoryRef{Tag: "v2.0.0"}, mode: sourcev1.ModeGitTagAndHEAD},
		"only the tag is":    {ref: sourcev1.GitRepositoryRef{Tag: "v1.0.0"}, mode: sourcev1.ModeGitTagAndHEAD, says: "commit " + unsigned + " is not signed", kind: failure.ErrSignature},
		"only the commit is": {ref: sourcev1.GitRepositoryRef{Tag: "v1.1.0"}, mode: sourcev1.ModeGitTag, says: "tag v1.1.0", kind: failure.ErrSignature},
		"lightweight":        {ref: sourcev1.GitRepositoryRef{Tag: "v1.2.0"}, mode: sourcev1.ModeGitTag, says: "lightweight", kind: failure.ErrSignature},
		"of another name":    {ref: sourcev1.GitRepositoryRef{Tag: "v1.3.0"}, mode: sourcev1.ModeGitTag, says: "under this name", kind: failure.ErrSignature},
		"a tag of a tag":     {ref: sourcev1.GitRepositoryRef{Tag: "v2.1.0"}, mode: sourcev1.ModeGitTag, says: "not about commit", kind: failure.ErrSignature},
		"a branch":           {ref: sourcev1.GitRepositoryRef{Branch: "main"}, mode: sourcev1.ModeGitTag, says: "ref.tag", kind: failure.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(t.TempDir(), loopback)
			// The store has the commit before the tag is requested.
			fetchOK(t, store, Source{URL: server.RepoURL(), Ref: &tc.ref})
			v := signature.Verification{Mode: tc.mode, Keys: keys, Now: time.Now}
			commit := fetchOK(t, store, Source{URL: server.RepoURL(), Ref: &tc.ref, WithTag: v.WantsTag()})
			err := commit.Verify(v)
			if tc.kind == nil && err != nil || tc.kind != nil && (!errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v", err)
			}
			server.Seen()
			again := fetchOK(t, store, Source{URL: server.RepoURL(), Ref: &tc.ref, WithTag: v.WantsTag()})
			if seen := server.Seen(); len(seen) != 1 || again.Hash != commit.Hash {
				t.Errorf("fetched again: %v", seen)
			}
		})
	}
}
