"""Texts with secrets, in the forms that people and programs use. The secrets are generated at run time.

The forms follow manuals of commands, file formats and the output of programs. The patterns of the redaction were
improved until they matched all of them.
"""

from __future__ import annotations

import base64
import json
import random
import string

__all__ = ["ELSEWHERE"]

_random = random.Random(77)


def some(count: int, characters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_random.choice(characters) for _ in range(count))


WORD = "Gr33nTractor"
PLAIN = "mandolin7x"
KEY = some(40)
HEX = string.digits + "abcdef"
AWS = "ASIA" + some(16, string.ascii_uppercase + "234567")
GITHUB = "ghs_" + some(36)

#: Name, text, and the part of the text that the redaction must remove.
FORMS: list[tuple[str, str, str]] = [
    # configuration files
    ("properties", f"spring.datasource.password={WORD}\n", WORD),
    ("properties with blanks", f"db.user = app\ndb.pass = {PLAIN}\n", PLAIN),
    ("dotenv, quoted", f"POSTGRES_PASSWORD='{WORD}'\n", WORD),
    ("dotenv, exported", f'export RABBITMQ_DEFAULT_PASS="{PLAIN}"\n', PLAIN),
    ("dotenv, with a comment", f"SMTP_PW={PLAIN} # the mailer\n", PLAIN),
    ("docker compose, list", f"environment:\n  - MYSQL_ROOT_PASSWORD={WORD}\n", WORD),
    ("docker compose, mapping", f"environment:\n  MINIO_ROOT_PASSWORD: {WORD}\n", WORD),
    ("Dockerfile ENV", f"ENV APP_SECRET {WORD}\n", WORD),
    ("Dockerfile ARG", f"ARG NPM_TOKEN={PLAIN}\n", PLAIN),
    ("TOML", f'[db]\npassword = "{WORD}"\n', WORD),
    ("YAML, quoted key", f'"clientSecret": "{WORD}"\n', WORD),
    ("YAML, block", f"passphrase: |\n  {WORD}\nnext: 1\n", WORD),
    ("YAML, folded block", f"token: >-\n    {PLAIN}\nnext: 1\n", PLAIN),
    ("Helm values", f"redis:\n  auth:\n    password: {PLAIN}\n", PLAIN),
    ("Ansible inventory", f"web1 ansible_user=root ansible_ssh_pass={PLAIN}\n", PLAIN),
    ("Ansible become", f"ansible_become_password: {WORD}\n", WORD),
    ("Terraform variable", f'variable "db_password" {{\n  default = "{WORD}"\n}}\n', WORD),
    ("Terraform output", f'admin_password = "{WORD}"\n', WORD),
    ("git credentials", f"https://me:{PLAIN}@git.example.com\n", PLAIN),
    (
        "git config extraheader",
        f"extraheader = AUTHORIZATION: basic {base64.b64encode(WORD.encode()).decode()}",
        "basic R3IzM25",
    ),
    ("npmrc", f"//registry.example.com/:_authToken={PLAIN}-9\n", PLAIN),
    ("npmrc, password", f"//registry.example.com/:_password={PLAIN}\n", PLAIN),
    ("pypirc", f"[pypi]\nusername = me\npassword = {PLAIN}\n", PLAIN),
    ("netrc, over lines", f"machine api.example.com\n  login me\n  password {PLAIN}\n", PLAIN),
    ("my.cnf", f"[client]\nuser=root\npassword={PLAIN}\n", PLAIN),
    ("php", f"define('DB_PASSWORD', '{WORD}');", WORD),
    ("php array", f"'password' => '{WORD}',", WORD),
    ("Ruby hash", f':secret_key_base => "{WORD}"', WORD),
    ("Java", f'private static final String PASSWORD = "{WORD}";', WORD),
    ("Go", f'apiToken := "{WORD}"', WORD),
    ("Rust", f'let secret: &str = "{WORD}";', WORD),
    ("C#", f'var connectionString = "Server=db;User Id=sa;Password={WORD};";', WORD),
    ("ADO, Pwd", f"Server=db;Uid=sa;Pwd={PLAIN};", PLAIN),
    ("JDBC", f"jdbc:postgresql://db/x?user=me&password={PLAIN}&ssl=true", PLAIN),
    ("redis URL", f"redis://:{PLAIN}@cache:6379/0", PLAIN),
    ("mongo URL", f"mongodb+srv://app:{PLAIN}@cluster0.example.net/?retryWrites=true", PLAIN),
    ("amqp URL", f"amqp://guest:{PLAIN}@mq/", PLAIN),
    ("ssh config of a proxy", f"ProxyCommand sshpass -p {PLAIN} ssh -W %h:%p jump", PLAIN),
    ("wpa_supplicant", f'network={{\n  ssid="x"\n  psk="{PLAIN}"\n}}', PLAIN),
    ("hostapd", f"wpa_passphrase={PLAIN}\n", PLAIN),
    ("NetworkManager", f"[wifi-security]\nkey-mgmt=wpa-psk\npsk={PLAIN}\n", PLAIN),
    ("OpenVPN auth", f"auth-user-pass:\nuser: me\npass: {PLAIN}\n", PLAIN),
    ("Kubernetes stringData", f"stringData:\n  password: {WORD}\n", WORD),
    (
        "Kubernetes data",
        f"data:\n  admin: {base64.b64encode(WORD.encode()).decode()}\n",
        base64.b64encode(WORD.encode()).decode(),
    ),
    ("kubeconfig", f"users:\n- user:\n    token: {PLAIN}\n", PLAIN),
    (
        "docker config",
        json.dumps({"auths": {"r.example.com": {"auth": base64.b64encode(f"me:{WORD}".encode()).decode()}}}),
        base64.b64encode(f"me:{WORD}".encode()).decode(),
    ),
    ("Spring XML", f'<property name="password" value="{WORD}"/>', WORD),
    ("Maven settings", f"<server><id>x</id><username>me</username><password>{WORD}</password></server>", WORD),
    ("Tomcat users", f'<user username="me" password="{PLAIN}" roles="x"/>', PLAIN),
    ("web.config", f'<add key="ApiToken" value="{WORD}"/>', WORD),
    ("plist", f"<key>AccessToken</key>\n<string>{PLAIN}</string>", PLAIN),
    ("XML with a namespace", f'<wsse:Password Type="x#PasswordText">{WORD}</wsse:Password>', WORD),
    ("SOAP, escaped", f"&lt;password&gt;{WORD}&lt;/password&gt;", WORD),
    ("INI, with a colon", f"[api]\napi-key: {PLAIN}\n", PLAIN),
    ("registry file", f'"DefaultPassword"="{WORD}"', WORD),
    ("Cisco", f"enable secret 0 {WORD}\nusername admin password 0 {WORD}\n", WORD),
    # commands
    ("psql variable", f"PGPASSWORD={PLAIN} psql -h db", PLAIN),
    ("mysql, long", f"mysql --user=root --password={PLAIN} db", PLAIN),
    ("mysqldump", f"mysqldump -uroot -p{PLAIN} --all-databases", PLAIN),
    ("mariadb, quoted", f"mariadb -u root -p'{WORD}' -e 'select 1'", WORD),
    ("curl basic", f"curl -u me:{PLAIN} https://example.com", PLAIN),
    ("curl header", f"curl -H 'X-Api-Key: {PLAIN}' https://example.com", PLAIN),
    ("curl header, double", f'curl -H "Private-Token: {WORD}" https://example.com', WORD),
    ("curl form", f"curl -d 'grant_type=password&username=me&password={WORD}' https://x", WORD),
    ("curl JSON", f'curl -d \'{{"user":"me","password":"{WORD}"}}\' https://x', WORD),
    ("wget", f"wget --http-user=me --http-password={PLAIN} https://x", PLAIN),
    ("httpie", f"http -a me:{PLAIN} https://x", PLAIN),
    ("docker login", f"docker login -u me --password {PLAIN} r.example.com", PLAIN),
    ("podman login, short", f"podman login -u me -p {PLAIN} r.example.com", PLAIN),
    ("echo to login", f"echo '{WORD}' | docker login -u me --password-stdin", WORD),
    ("echo to sudo", f"echo {PLAIN} | sudo -S apt update", PLAIN),
    ("chpasswd", f"echo 'root:{PLAIN}' | chpasswd", PLAIN),
    ("sshpass, glued", f"sshpass -p{PLAIN} ssh host", PLAIN),
    ("sshpass, quoted", f"sshpass -p '{WORD}' scp a b", WORD),
    ("openssl", f"openssl enc -aes-256-cbc -pass pass:{WORD} -in a", WORD),
    ("keytool", f"keytool -list -storepass {PLAIN} -keystore a.jks", PLAIN),
    ("zip", f"zip -P {PLAIN} a.zip b", PLAIN),
    ("7z", f"7z a -p{PLAIN} a.7z b", PLAIN),
    ("unzip", f"unzip -P {PLAIN} a.zip", PLAIN),
    ("ldapsearch", f"ldapsearch -D cn=admin -w {PLAIN} -b dc=x", PLAIN),
    ("mongosh", f"mongosh -u me -p {PLAIN} --host db", PLAIN),
    ("redis-cli", f"redis-cli -h cache -a {PLAIN} ping", PLAIN),
    ("sqlcmd", f"sqlcmd -S db -U sa -P {WORD} -Q x", WORD),
    ("smbclient", f"smbclient //h/s -U me%{PLAIN}", PLAIN),
    ("net use", f"net use Z: \\\\h\\s /user:me /password:{PLAIN}", PLAIN),
    ("rsync variable", f"RSYNC_PASSWORD={PLAIN} rsync a b::c", PLAIN),
    ("az", f"az login --service-principal -u a --tenant t -p {WORD}", WORD),
    ("gh secret", f"gh secret set DEPLOY_TOKEN --body {PLAIN}", PLAIN),
    ("aws configure", f"aws configure set aws_secret_access_key {KEY}", KEY),
    ("kubectl literal", f"kubectl create secret generic s --from-literal=password={WORD}", WORD),
    ("helm set", f"helm install x y --set auth.rootPassword={PLAIN}", PLAIN),
    ("vault kv", f"vault kv put secret/x password={PLAIN}", PLAIN),
    ("heroku config", f"heroku config:set SECRET_KEY_BASE={WORD}", WORD),
    ("PowerShell", f'ConvertTo-SecureString -String "{WORD}" -AsPlainText', WORD),
    ("PowerShell variable", f"$env:DB_PASSWORD = '{WORD}'", WORD),
    ("cmd set", f"set API_TOKEN={PLAIN}", PLAIN),
    ("SQL identified by", f"CREATE USER 'me'@'%' IDENTIFIED BY '{WORD}';", WORD),
    ("SQL with password", f"ALTER ROLE me WITH PASSWORD '{WORD}';", WORD),
    ("SQL Server login", f"CREATE LOGIN me WITH PASSWORD = N'{WORD}';", WORD),
    ("SQL update", f"UPDATE users SET password='{WORD}' WHERE id=1", WORD),
    # output of programs
    ("log", f"2026-11-24 INFO user=me password={PLAIN} ok", PLAIN),
    ("log, JSON", f'INFO {{"event":"login","passwd":"{PLAIN}"}}', PLAIN),
    ("log, Python", f"INFO params: {{'auth_token': '{PLAIN}', 'n': 1}}", PLAIN),
    ("repr of a class", f"Settings(host='x', secret_key='{WORD}', debug=True)", WORD),
    ("struct of Go", f"{{Host:x Password:{PLAIN} Port:1}}", PLAIN),
    ("header dump", f"> Authorization: Token {PLAIN}\n> Accept: */*", PLAIN),
    ("header dump, api key", f"< X-Auth-Token: {PLAIN}\r\n< Server: x", PLAIN),
    ("set-cookie", f"< Set-Cookie: session={PLAIN}; HttpOnly", PLAIN),
    ("prompt", f"Password: {PLAIN}\n", PLAIN),
    ("prompt on the next line", f"Enter the password:\n{PLAIN}\n", PLAIN),
    ("sentence, new password", f"Your new password is {PLAIN}.", PLAIN),
    ("sentence, is:", f"The API key is: {WORD}", WORD),
    ("sentence, to", f"I changed the password to {PLAIN}", PLAIN),
    ("sentence, quoted", f"log in with the password `{WORD}`", WORD),
    ("sentence, German", f"Das Passwort lautet {PLAIN}", PLAIN),
    ("sentence, PIN", "Your PIN is 482913", "482913"),
    ("one-time code", "TOTP code: 482913", "482913"),
    ("markdown table", f"| name | token |\n|---|---|\n| ci | {PLAIN} |\n", PLAIN),
    ("TSV", f"user\tpassword\nme\t{PLAIN}\n", PLAIN),
    ("CSV, quoted", f'"user","api_key","n"\n"me","{PLAIN}","1"\n', PLAIN),
    ("psql table", f" id | password \n----+----------\n  1 | {PLAIN}\n", PLAIN),
    ("env dump", f"HOME=/root\nGITEA_ADMIN_PASSWD={PLAIN}\nLANG=C\n", PLAIN),
    ("set -x", f"+ DB_PASS={PLAIN}\n+ ./run", PLAIN),
    ("ps", f"root 1 0.0 /usr/bin/app --db-pass {PLAIN} --port 1", PLAIN),
    ("diff", f"-password: old\n+password: {PLAIN}\n", PLAIN),
    # other encodings, and nested formats
    ("base64 of a short one", base64.b64encode(PLAIN.encode()).decode(), base64.b64encode(PLAIN.encode()).decode()),
    (
        "base64 for URLs",
        base64.urlsafe_b64encode(f"me:{WORD}??>".encode()).decode(),
        base64.urlsafe_b64encode(f"me:{WORD}??>".encode()).decode()[:16],
    ),
    (
        "base64, UTF-16, of PowerShell",
        "powershell -enc " + base64.b64encode(f"$p='{WORD}'".encode("utf-16-le")).decode(),
        base64.b64encode(f"$p='{WORD}'".encode("utf-16-le")).decode(),
    ),
    ("hex, capitals", f"token in hex {WORD.encode().hex().upper()}", WORD.encode().hex().upper()),
    (
        "hex with colons",
        ":".join(f"{byte:02x}" for byte in WORD.encode()),
        ":".join(f"{byte:02x}" for byte in WORD.encode()),
    ),
    ("od", " ".join(f"{byte:02x}" for byte in WORD.encode()), " ".join(f"{byte:02x}" for byte in WORD.encode())),
    (
        "array of C",
        ", ".join(f"0x{byte:02x}" for byte in WORD.encode()),
        ", ".join(f"0x{byte:02x}" for byte in WORD.encode()),
    ),
    (
        "bytes of Python",
        "".join(f"\\x{byte:02x}" for byte in f"password={WORD}".encode()),
        "".join(f"\\x{byte:02x}" for byte in WORD.encode()),
    ),
    (
        "numbers of characters",
        "[" + ", ".join(str(byte) for byte in WORD.encode()) + "]",
        ", ".join(str(byte) for byte in WORD.encode()),
    ),
    ("base32", base64.b32encode(WORD.encode()).decode(), base64.b32encode(WORD.encode()).decode()),
    (
        "percent, all",
        "".join(f"%{byte:02X}" for byte in f"password={WORD}".encode()),
        "".join(f"%{byte:02X}" for byte in WORD.encode()),
    ),
    (
        "entities, decimal",
        "".join(f"&#{byte};" for byte in f"password={WORD}".encode()),
        "".join(f"&#{byte};" for byte in WORD.encode()),
    ),
    (
        "entities, hex",
        "".join(f"&#x{byte:x};" for byte in AWS.encode()),
        "".join(f"&#x{byte:x};" for byte in AWS.encode()),
    ),
    ("quoted-printable, soft break", f"password=3D{WORD[:5]}=\n{WORD[5:]}\n", WORD[5:]),
    ("colour of grep", f"\x1b[01;31m\x1b[KDB_PASS\x1b[m\x1b[K={PLAIN}", PLAIN),
    ("colour behind the name", f"password\x1b[0m: \x1b[33m{PLAIN}\x1b[0m", PLAIN),
    ("soft hyphens", "\xad".join(GITHUB), "\xad".join(GITHUB)),
    ("word joiner in a name", f"pass\u2060word={PLAIN}", PLAIN),
    (
        "letters of mathematics",
        f"password={PLAIN}".translate({n: 0x1D41A + n - 97 for n in range(97, 123)}),
        "7\U0001d431",
    ),
    ("struck over", "".join(f"{one}\b{one}" for one in AWS), "".join(f"{one}\b{one}" for one in AWS[4:])),
    ("in a string with +", f'key = "{GITHUB[:12]}" + "{GITHUB[12:]}"', GITHUB[12:]),
    ("over two lines, with a backslash", f"export T={GITHUB[:15]}\\\n{GITHUB[15:]}", GITHUB[15:]),
    ("JSON in JSON, with a secret name", json.dumps({"body": json.dumps({"refreshToken": PLAIN})}), PLAIN),
    ("JSON with a comment", f'{{"password": "{PLAIN}" /* x */}}', PLAIN),
    ("JSON5", f"{{password: '{PLAIN}', n: 1}}", PLAIN),
    ("JSON lines", f'{{"n":1}}\n{{"pw":"{PLAIN}"}}\n', PLAIN),
    ("JSON that is cut", f'{{"a": {{"secret": "{WORD}', WORD),
    # tokens
    ("token of 20, small", *(lambda t: (f"run {t}", t))(some(20, string.ascii_lowercase + string.digits[2:]))),
    ("hex of 32", *(lambda t: (f"x-{t}", t))(some(32, HEX))),
    ("hex of 24", *(lambda t: (f"use {t} now", t))(some(24, HEX))),
    ("mixed of 16", *(lambda t: (f"use {t} now", t))("q7Xp2Lm9Zt4Rk8Vw")),
    ("capitals of 20", *(lambda t: (f"use {t} now", t))("K7XQ2MPL9ZT4RK8VWB3D")),
    (
        "Dynatrace",
        *(lambda t: (t, t[8:]))(f"dt0c01.{some(24, string.ascii_uppercase)}.{some(64, string.ascii_uppercase)}"),
    ),
    ("PlanetScale", *(lambda t: (t, t[11:]))("pscale_tkn_" + some(43))),
    ("Shippo", *(lambda t: (t, t[12:]))("shippo_live_" + some(40, HEX))),
    ("Prefect", *(lambda t: (t, t[4:]))("pnu_" + some(36))),
    ("1Password", *(lambda t: (t, t))("A3-ASWWYB-798JRYLJVD4-23DC2-86TVM-H43EB")),
    (
        "Teams webhook",
        *(lambda t: (t, t[-45:]))(
            f"https://x.webhook.office.com/webhookb2/{some(8, HEX)}-1111-2222-3333-{some(12, HEX)}@{some(8, HEX)}-1111-2222-3333-{some(12, HEX)}/IncomingWebhook/{some(32, HEX)}/{some(8, HEX)}-1111-2222-3333-{some(12, HEX)}"  # noqa: E501
        ),
    ),
    (
        "JWT",
        *(lambda t: (t, t[12:]))(
            ".".join(
                base64.urlsafe_b64encode(p.encode()).decode().rstrip("=")
                for p in ('{"alg":"HS256"}', '{"sub":"1"}', some(30))
            )
        ),
    ),
    ("bcrypt", *(lambda t: (f"hash {t}", t[7:]))("$2b$12$" + some(53))),
    ("LDAP hash", *(lambda t: (f"userPassword: {{SSHA}}{t}", t))(base64.b64encode(some(24).encode()).decode())),
]

ELSEWHERE: dict[str, tuple[str, str]] = {name: (text, secret) for name, text, secret in FORMS}
