package sops

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keyservice"
)

// vault decrypts with HashiCorp Vault's transit engine.
type vault struct{ token string }

func readVault(content []byte) (*vault, []string, string) {
	token := strings.TrimSpace(string(content))
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return nil, nil, "holds no token of Vault"
	}
	return &vault{token}, []string{token}, ""
}

func (v *vault) decryption(key *keyservice.VaultKey, enc string, client *http.Client) decryption {
	is := &hcvault.MasterKey{VaultAddress: key.VaultAddress, EnginePath: key.EnginePath, KeyName: key.KeyName, EncryptedKey: enc}
	hcvault.Token(v.token).ApplyToMasterKey(is)
	hcvault.NewHTTPClient(client).ApplyToMasterKey(is)
	return func(ctx context.Context) ([]byte, error) {
		if !strings.HasPrefix(key.VaultAddress, "https://") { // The library also accepts unix://.
			return nil, errors.New("its address does not begin with https://")
		}
		return is.DecryptContext(ctx)
	}
}
