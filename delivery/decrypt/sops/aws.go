package sops

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/kms"
	"sigs.k8s.io/yaml"
)

// awsKMS decrypts with AWS KMS.
type awsKMS struct{ credentials *kms.CredentialsProvider }

func readAWS(content []byte) (*awsKMS, []string, string) {
	var in struct {
		ID     string `json:"aws_access_key_id"`
		Secret string `json:"aws_secret_access_key"`
		Token  string `json:"aws_session_token"`
	}
	if err := yaml.Unmarshal(content, &in); err != nil || in.ID == "" || in.Secret == "" {
		return nil, nil, "holds something else than aws_access_key_id, aws_secret_access_key and, if wanted, aws_session_token, as YAML"
	}
	provider := credentials.NewStaticCredentialsProvider(in.ID, in.Secret, in.Token)
	return &awsKMS{kms.NewCredentialsProvider(provider)}, []string{in.Secret, in.Token}, ""
}

// decryption ignores the profile that a key may name, because it refers to a file on the machine of the person who encrypted.
func (a *awsKMS) decryption(key *keyservice.KmsKey, enc string, client *http.Client) decryption {
	encryptionContext := map[string]*string{}
	for name, value := range key.Context {
		encryptionContext[name] = &value
	}
	is := &kms.MasterKey{Arn: key.Arn, Role: key.Role, EncryptionContext: encryptionContext, EncryptedKey: enc}
	a.credentials.ApplyToMasterKey(is)
	kms.NewHTTPClient(client).ApplyToMasterKey(is)
	return is.DecryptContext
}
