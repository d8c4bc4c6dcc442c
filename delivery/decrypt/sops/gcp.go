package sops

import (
	"context"
	"net/http"

	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/keyservice"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/option"
)

// gcpKMS decrypts with GCP KMS as a service account.
type gcpKMS struct{ account *jwt.Config }

// readGCP accepts only the key of a service account: other credentials name files, programs or metadata services.
func readGCP(content []byte) (*gcpKMS, []string, string) {
	account, err := google.JWTConfigFromJSON(content, "https://www.googleapis.com/auth/cloudkms")
	if err != nil || len(account.PrivateKey) == 0 || account.Email == "" {
		return nil, nil, "holds something else than the key of a service account, as JSON"
	}
	account.TokenURL = google.JWTTokenURL // Ignore the URL in the key.
	return &gcpKMS{account}, []string{string(account.PrivateKey)}, ""
}

func (g *gcpKMS) decryption(key *keyservice.GcpKmsKey, enc string, client *http.Client) decryption {
	return func(ctx context.Context) ([]byte, error) {
		tokens := g.account.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, client))
		is := &gcpkms.MasterKey{ResourceID: key.ResourceId, EncryptedKey: enc}
		gcpkms.NewTokenSource(tokens).ApplyToMasterKey(is) // Without a token source, the library looks for other credentials.
		gcpkms.UseRESTClient{}.ApplyToMasterKey(is)
		authorized := &http.Client{Transport: &oauth2.Transport{Source: tokens, Base: client.Transport}}
		gcpkms.ClientOptions{option.WithHTTPClient(authorized)}.ApplyToMasterKey(is)
		return is.DecryptContext(ctx)
	}
}
