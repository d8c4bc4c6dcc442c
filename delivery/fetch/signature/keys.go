package signature

import (
	"path"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// publicKeys are the keys whose signatures are accepted.
type publicKeys struct {
	openpgp openpgp.EntityList
	ssh     []ssh.PublicKey
	now     func() time.Time
	// secret has the keys; see Verification.
	secret string
}

// readKeys reads the keys in the data of the Secret.
func (v Verification) readKeys() (*publicKeys, error) {
	keys := &publicKeys{now: v.Now, secret: v.Secret}
	for name, text := range v.Keys {
		var err error
		switch path.Ext(name) {
		case ".asc":
			err = keys.addOpenPGP(name, text)
		case ".pub":
			err = keys.addSSH(name, text)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(keys.openpgp)+len(keys.ssh) == 0 {
		return nil, failure.New(failure.ErrInvalid, "the Secret of verify holds no public key: add *.asc (OpenPGP) or *.pub (SSH)%s", writeKeys(v.Secret))
	}
	return keys, nil
}
