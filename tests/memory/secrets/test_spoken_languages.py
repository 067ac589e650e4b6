"""What holds of a secret in English holds in the other languages: it goes, and its twin without a secret stays."""

from __future__ import annotations

import pytest

from memory.secrets.redaction import redact

TOLD = {
    "fr": """
Pour les invités, le mot de passe du wifi est {Hirondelle-92}.
Mon mdp Netflix : {Crevette!08}
Le code de la porte d'entrée est {7391}, il faut pousser fort.
Note le code de l'alarme : {6048}
Le digicode de l'immeuble c'est {28B45}, deuxième étage
Mon code secret de carte bleue est {5512}
Mon mot de passe est maintenant {Coquelicot_31}, ne le dis à personne
""",
    "it": """
La password del router è {Pettirosso-92}, scrivila da qualche parte.
Chiave wifi: {Gelsomino!08}
Il codice del cancello è {7391} e poi premi la campanella
Il codice di verifica è {604822}
Il mio codice pin è {5512}
La mia password è ancora {Papavero_31}, lo so, dovrei cambiarla
{Cinghiale_45} è la mia password
""",
    "pt": """
A senha da rede dos convidados é {Beija-Flor92}.
A palavra-passe do portátil é {Gaivota!08}
O código do portão é {7391}, espera pelo clique
O código de verificação é {604822}
A senha do meu cartão é {5512}
Minha senha agora é {Girassol_31}, anota aí
Troquei a senha do email, agora é {Capivara45}
""",
    "nl": """
Het wachtwoord voor de gasten is {Roodborst-92}.
Mijn Netflix-wachtwoord: {Garnaal!08}
De code van het hek is {7391}, even hard duwen
De verificatiecode is {604822}
De pincode van mijn bankpas is {5512}
Mijn wachtwoord is nog steeds {Klaproos_31}, ik weet het
Ik heb het wachtwoord veranderd naar {Bever4512}
""",
    "pl": """
Hasło do wifi dla gości to {Rudzik-92}.
Hasło do Netflixa: {Krewetka!08}
Kod do bramy to {7391}, trzeba mocno pchnąć
Kod weryfikacyjny to {604822}
PIN do mojej karty to {5512}
Moje hasło to nadal {Maczek_31}, wiem, powinnam zmienić
Zmieniłem hasło do poczty na {Bocian4512}
""",
    "ru": """
Пароль от гостевого вайфая: {Malinovka-92}.
Пароль от нетфликса: {Krevetka!08}
Код от ворот {7391}, толкать надо сильно
Код подтверждения {604822}
Пин-код моей карты: {5512}
Мой пароль теперь {Мак_31йц}, никому не говори
Я поменял пароль на {Aist4512}
""",
    "ja": """
ゲスト用Wi-Fiのパスワードは {komadori-92} です。
Netflixのパスワード：{Ebi!2008x}
オートロックの暗証番号は{7391}なので、押してから入ってね
届いた確認コードは{604822}です
銀行カードの暗証番号は{5512}にしています
パスワードは今{himawari_31}です
うちのアラームの解除コードは{8203}だよ
""",
    "ko": """
손님용 와이파이 비밀번호는 {ulsae-9204} 예요.
넷플릭스 비번: {Saeu!2008}
대문 비밀번호는 {7391}
인증번호는 {604822}
체크카드 비밀번호는 {5512}
비밀번호는 지금 {haebaragi_31}
경보기 해제 코드는 {8203}
""",
    "ar": """
كلمة سر الواي فاي للضيوف هي {Bulbul-92}.
كلمة مرور نتفلكس: {Jambari!08}
رمز البوابة هو {7391} ثم ادفع الباب بقوة
رمز التحقق هو {604822}
الرقم السري للبطاقة هو {5512}
كلمة المرور الآن هي {Khashkhash_31}، لا تخبر أحدا
غيرت كلمة السر إلى {Laqlaq4512}
""",
}
TALK = {
    "fr": """
Le mot de passe du wifi est écrit sur le frigo.
Comment réinitialiser mon mdp Netflix ?
Le code de la porte d'entrée ne marche plus depuis mardi.
Mots de passe : changez-les tous les 90 jours
Le dress code de la soirée est décontracté
Un bon mot de passe contient 12 caractères et des chiffres
Le mot de passe est le même que pour ma tablette
J'ai perdu mon code secret et la banque met 10 jours à le renvoyer
""",
    "it": """
La password del router è scritta sul frigo.
Come faccio a recuperare la password di Netflix?
Il codice del cancello non funziona più da martedì.
Password: cambiatela ogni 90 giorni
Una buona password ha 12 caratteri e qualche numero
La password è la stessa del tablet
Il codice della strada è stato riformato nel 2024
Ho perso il pin e la banca ci mette 10 giorni
""",
    "pt": """
A senha da rede está escrita na geladeira.
Como recupero a senha da Netflix?
O código do portão não funciona desde terça.
Senhas: troquem a cada 90 dias
Uma boa senha tem 12 caracteres e alguns números
A senha é a mesma do tablet
O código civil é de 2002
Perdi a senha do cartão e o banco leva 10 dias para mandar outra
""",
    "nl": """
Het wachtwoord van de router staat op de koelkast.
Hoe herstel ik mijn wachtwoord van Netflix?
De code van het hek werkt niet meer sinds dinsdag.
Wachtwoorden: verander ze elke 90 dagen
Een goed wachtwoord heeft 12 tekens en een paar cijfers
Het wachtwoord is hetzelfde als dat van de tablet
De dresscode is informeel
Ik ben mijn pincode kwijt en de bank doet er 10 dagen over
""",
    "pl": """
Hasło do wifi jest zapisane na lodówce.
Jak odzyskać hasło do Netflixa?
Kod do bramy nie działa od wtorku.
Hasła: zmieniajcie je co 90 dni
Dobre hasło ma 12 znaków i kilka cyfr
Hasło jest takie samo jak do tabletu
Kod drogowy zmieniono w 2024 roku
Zgubiłem PIN i bank wyśle nowy za 10 dni
""",
    "ru": """
Пароль от вайфая написан на холодильнике.
Как восстановить пароль от нетфликса?
Код от ворот не работает со вторника.
Пароли: меняйте их каждые 90 дней
Хороший пароль состоит из 12 символов и нескольких цифр
Пароль тот же, что и на планшете
Код города 495, звоните после 10
Я потерял пин-код, и банк пришлёт новый через 10 дней
""",
    "ja": """
Wi-Fiのパスワードは冷蔵庫に貼ってあります。
Netflixのパスワードを再設定するには？
火曜日から暗証番号が効きません。
パスワードは90日ごとに変えましょう
よいパスワードは12文字以上で数字を含みます
パスワードはタブレットと同じです
ドレスコードはカジュアルです
暗証番号を忘れたので、銀行から届くまで10日かかる
""",
    "ko": """
와이파이 비밀번호는 냉장고에 적혀 있어요.
넷플릭스 비밀번호를 어떻게 재설정하나요?
화요일부터 대문 비밀번호가 안 먹혀요.
비밀번호는 90일마다 바꾸세요
좋은 비밀번호는 12자 이상이고 숫자가 들어가요
비밀번호는 태블릿과 같아요
드레스 코드는 캐주얼이에요
핀번호를 잃어버려서 은행에서 10일 걸린대요
""",
    "ar": """
كلمة سر الواي فاي مكتوبة على الثلاجة.
كيف أستعيد كلمة مرور نتفلكس؟
رمز البوابة لا يعمل منذ الثلاثاء.
كلمات المرور: غيروها كل 90 يوما
كلمة المرور الجيدة فيها 12 حرفا وبعض الأرقام
كلمة السر هي نفس كلمة الجهاز اللوحي
رمز المدينة 02 لمن يتصل من الخارج
نسيت الرقم السري والبنك يحتاج 10 أيام
""",
}


def _cases(texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(language, line) for language, lines in texts.items() for line in lines.strip().splitlines()]


@pytest.mark.parametrize(("language", "line"), _cases(TOLD))
def test_a_secret_goes_and_the_words_before_it_stay(language: str, line: str) -> None:
    before, _, rest = line.partition("{")
    secret, _, _ = rest.partition("}")
    redacted = redact(line.replace("{", "").replace("}", ""))
    assert secret not in redacted, language
    assert redacted.startswith(f"{before}[redacted password]"), language
    assert redact(redacted) == redacted, language


@pytest.mark.parametrize(("language", "line"), _cases(TALK))
def test_its_twin_without_a_secret_stays(language: str, line: str) -> None:
    assert redact(line) == line, language
